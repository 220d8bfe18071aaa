package product

// docs is where the pages of the main branch can be read.
const docs = "https://github.com/wasmgate/wasmgate/blob/main/docs/"

// Help is the address of the text that says what a code means, such as refused_pin, and what to do.
func Help(code string) string { return docs + "reference/refusals.md#" + code }
