package gate

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate/obligation"
)

// maxRates bounds the rates of one call; each is a look into a table.
const maxRates = 64

// joinRates returns the rates with r, if it is not one of them.
func joinRates(rates []obligation.Rate, r obligation.Rate) []obligation.Rate {
	if slices.ContainsFunc(rates, r.Equal) {
		return rates
	}
	return append(slices.Clip(rates), r)
}
