package spelling

import "strconv"

// Suggest returns `; did you mean "x"?` for the known word nearest to s, or "".
func Suggest(s string, known []string) string {
	best, near := "", 3 // two edits are a slip, three another word
	for _, k := range known {
		if d := Distance(s, k); d < near && 2*d <= len(k) {
			best, near = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(best) + "?"
}

// Distance counts the insertions, deletions, replacements and swaps of
// neighbours that lead from a to b (optimal string alignment).
func Distance(a, b string) int {
	if max(len(a), len(b)) > 64 {
		return 64 // no key is that long, and the table below is square
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
