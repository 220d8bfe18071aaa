// Package arch checks the module's architecture: its test says which package may import which, and
// how large and how entangled packages may be, as [Measure] finds them.
//
// arch_test.go has the imports of each package, house.go measures and house_test.go bounds it;
// documents_test.go holds tables of documents against the code, seeds_test.go random tests against
// internal/testing/seed. language_test.go holds words and sentences; its exceptions, in
// testdata/language.txt, only shrink. The program measure prints what house.go finds, the program
// passed prints which parts of the module one call passes.
package arch
