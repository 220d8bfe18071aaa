// Package toolchain tries compilers, browsers and other programs that tests need, because one that
// is installed need not work: rustup's rustc without a toolchain, Node without the packages.
//
// A test that needs a program that does not work is skipped with the reason. If WASMGATE_REQUIRE
// lists the program, as .ci/run does with those that it installs, the test fails.
package toolchain
