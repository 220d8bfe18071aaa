package gate

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// kind returns what the texts are that a call brings: what the operator says of the tool,
// or else what the names of the files say that it reads.
func (p *Parts) kind(c *Call, t *Tool) provenance.TextKind {
	labels, labelled := provenance.ToolLabels{}, false
	if p.Labeler != nil {
		labels, labelled = p.Labeler.Labels(t)
	}
	switch {
	case labels.Kind != "":
		return labels.Kind
	case !t.OnMachine:
		return provenance.KindProse // a file's name says nothing of who has written what lies elsewhere
	case c.Action == ReadResource:
		if ofSource(fileOf(c.Name, true)) {
			return provenance.KindCode
		}
		return provenance.KindProse
	case c.Action != CallTool || !readsHere(t, labels, labelled):
		return provenance.KindProse
	}
	return kindOfFiles(c.Args)
}

// readsHere reports whether a tool reads, and does not reach beyond the machine: as its
// label says, or as it says itself.
func readsHere(t *Tool, labels provenance.ToolLabels, labelled bool) bool {
	if labelled {
		return len(labels.Effects) == 1 && labels.Effects[0] == provenance.EffectRead
	}
	open := t.Annotations.Get("openWorldHint")
	return t.Annotations.Get("readOnlyHint").True() && open.Kind() == doc.Bool && !open.True()
}

// kindOfFiles is KindCode if the arguments name files, and all of them are source or markup by
// their extensions.
func kindOfFiles(args Doc) provenance.TextKind {
	kind := provenance.KindProse
	for name, value := range args.Members() {
		if !namesFiles(name) {
			continue
		}
		values := []Doc{value}
		if value.Kind() == doc.Array {
			values = slices.Collect(value.Elements())
		}
		for _, v := range values {
			if v.Kind() != doc.String || !ofSource(fileOf(v.Text(), false)) {
				return provenance.KindProse
			}
			kind = provenance.KindCode
		}
	}
	return kind
}

// namesFiles reports whether an argument of this name names files: path, file_path,
// sourceFile, uris.
func namesFiles(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), "s")
	return slices.ContainsFunc([]string{"path", "file", "filename", "uri"}, func(word string) bool { return strings.HasSuffix(name, word) })
}

// fileOf returns the path of a file on the machine, "" if a text names none: a path, unless
// it has to be a URI, or a file: URI.
func fileOf(name string, isURI bool) string {
	u, err := url.Parse(name)
	switch {
	case err == nil && strings.EqualFold(u.Scheme, "file"):
		return u.Path
	case isURI || strings.Contains(name, "://"):
		return ""
	}
	return strings.ReplaceAll(name, `\`, "/")
}

// sourceExtensions are those of source and markup, in whose bytes a change of any kind is
// damage: who reads a file to edit it has to find in it what was read. Those of prose alone,
// such as .txt and .eml, are not among them.
var sourceExtensions = strings.Fields(`
	.go .mod .sum .c .h .cc .cpp .cxx .hh .hpp .hxx .m .mm .cs .fs .vb .java .kt .kts .scala .groovy .gradle .clj .cljs .ex .exs .erl .hrl .hs .ml .mli .elm
	.js .mjs .cjs .jsx .ts .mts .cts .tsx .vue .svelte .astro .py .pyi .pyx .rb .rake .php .pl .pm .lua .r .jl .dart .swift .rs .zig .nim .d .v .sol .asm .s
	.sh .bash .zsh .fish .ps1 .bat .cmd .awk .sed .vim .el .lisp .scm .rkt .sql .graphql .gql .proto .thrift .rego .tf .hcl .nix .cmake .mk .wat .wast
	.html .htm .xhtml .svg .xml .xsd .xsl .xslt .css .scss .sass .less .json .jsonc .json5 .ndjson .jsonl .yaml .yml .toml .ini .cfg .conf .properties .lock
	.md .mdx .markdown .rst .adoc .tex .diff .patch .ipynb .tmpl .tpl .hbs .ejs .jinja .j2 .erb`)

// sourceFiles are those of files of source that have no extension.
var sourceFiles = []string{"dockerfile", "makefile", "gnumakefile", "rakefile", "gemfile", "jenkinsfile", "vagrantfile", "procfile", "justfile", "cmakelists.txt", "go.mod", "go.sum"}

func ofSource(file string) bool {
	base := strings.ToLower(path.Base(file))
	return file != "" && (slices.Contains(sourceExtensions, path.Ext(base)) || slices.Contains(sourceFiles, base))
}
