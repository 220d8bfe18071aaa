// Package starter writes starter projects for tools in WebAssembly: small,
// complete, and built with the ordinary toolchain of their language.
//
// All of them hold the same tool, which counts the words, lines and characters
// of a text, and speak one of the two ABIs of package sandbox. A project has its
// source, a build file, a manifest, a test of its own and a README with the
// commands. Three fetch what they are built with: AssemblyScript its compiler, JavaScript
// and Python their interpreters.
//
// The projects stand as templates under templates/, a folder for each language.
// A template is a file of a project named word_count, with .tmpl behind its
// name, so that neither the Go tool nor git takes it for a part of this module.
package starter
