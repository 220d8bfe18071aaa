package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wasmgate/wasmgate/"

// rule says what a package may import of this module, and what not of all else. Bans are
// on direct imports; a name ending in "/..." covers all below.
type rule struct {
	imports []string
	bans    []string
}

// everything is the right of the two packages that put the others together.
var everything = []string{"..."}

// leaf bans all but the standard library's computations.
var leaf = []string{"context", "os", "net", "net/http", "github.com/...", "golang.org/..."}

// sdk is the MCP SDK, which carries messages and decides nothing.
var sdk = []string{"github.com/modelcontextprotocol/..."}

// rules has an entry for each package. A package that is none fails the test: a
// new one is a decision.
var rules = map[string]rule{
	"gate":                          {imports: []string{"internal/panicked", "gate/tracing", "internal/forms", "gate/inquiry", "gate/internal/peer", "gate/internal/redaction", "gate/step", "gate/obligation", "gate/codes", "gate/actions", "gate/doc", "gate/provenance", "internal/pointer"}, bans: []string{"github.com/...", "golang.org/..."}},
	"gate/doc":                      {imports: []string{"internal/pointer"}, bans: leaf},
	"gate/inquiry":                  {imports: []string{"gate/doc", "internal/escaped", "internal/pointer"}, bans: leaf},
	"gate/internal/peer":            {imports: []string{"gate/actions", "gate/doc", "internal/forms"}, bans: leaf},
	"gate/internal/redaction":       {imports: []string{"gate/doc"}, bans: leaf},
	"gate/provenance":               {imports: []string{"gate/doc", "internal/address", "internal/pointer"}, bans: leaf},
	"internal/forms":                {imports: []string{"gate/actions", "gate/doc", "internal/forms/internal/words"}, bans: []string{"context", "os", "net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/forms/internal/words": {bans: leaf},
	"internal/apps":                 {imports: []string{"gate/doc", "internal/pointer", "bridge/options"}, bans: []string{"context", "os", "net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/skills":               {imports: []string{"gate", "gate/doc", "sanitize"}, bans: []string{"context", "os", "net", "net/http"}},
	"internal/skills/folder":        {imports: []string{"gate", "internal/skills", "internal/files/watch"}, bans: []string{"net", "net/http", "github.com/..."}},
	"gate/tracing":                  {bans: leaf},
	"gate/approval":                 {imports: []string{"internal/fair", "internal/escaped", "gate/obligation", "gate/provenance", "gate", "internal/match"}, bans: []string{"net", "net/http", "database/sql"}},
	"gate/audit":                    {imports: []string{"gate/step", "gate", "gate/doc", "internal/files", "internal/pointer"}, bans: []string{"net/http", "database/sql"}},
	"bridge/jobs":                   {imports: []string{"gate/step", "gate/codes", "gate", "internal/drain"}, bans: []string{"net", "net/http", "database/sql"}},
	"gate/session":                  {imports: []string{"gate", "gate/doc", "gate/provenance", "internal/files"}},
	"gate/limits":                   {imports: []string{"internal/fair", "gate", "gate/obligation"}, bans: []string{"os", "net", "net/http", "github.com/..."}},
	"internal/store":                {imports: []string{"gate/codes", "gate", "bridge/jobs"}, bans: []string{"net", "net/http"}},
	"internal/testing/storetest":    {imports: []string{"bridge/options", "gate", "gate/codes", "gate/obligation", "gate/approval", "internal/testing/timelimit", "bridge/jobs", "gate/limits", "gate/session", "internal/auth/authtest", "internal/files/state", "internal/lock", "internal/login", "internal/modules/kv", "internal/config/policydata"}, bans: []string{"net", "database/sql"}},
	"policies":                      {},
	"internal/draft":                {imports: []string{"gate/provenance", "gate/doc", "gate", "internal/address", "internal/pointer", "policy", "policy/study", "internal/match", "internal/structure"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"policy/internal/archive":       {imports: []string{"internal/files/folder"}, bans: []string{"context", "os", "net", "net/http", "github.com/..."}},
	"internal/files/folder":         {bans: []string{"context", "net", "net/http", "github.com/..."}},
	"policy":                        {imports: []string{"gate", "gate/actions", "gate/obligation", "gate/provenance", "internal/match", "internal/spelling", "policies", "policy/bundle", "policy/internal/archive", "policy/internal/decision", "policy/internal/engine", "policy/internal/fields", "policy/internal/input", "policy/internal/owned", "policy/internal/plain", "policy/internal/tables"}, bans: []string{"net/http", "net"}},
	"policy/bundle":                 {imports: []string{"internal/panicked", "policy/internal/archive", "policy/internal/owned"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"policy/internal/owned":         {bans: leaf},
	"policy/study":                  {imports: []string{"gate", "gate/actions", "gate/doc", "gate/obligation", "gate/provenance", "gate/step", "policy", "policy/internal/decision", "policy/internal/engine", "policy/internal/owned"}, bans: []string{"os", "net", "net/http", "database/sql"}},
	"policy/internal/engine":        {imports: []string{"gate", "gate/actions", "gate/doc", "internal/forms", "internal/match", "internal/panicked", "policy/internal/decision", "policy/internal/input", "policy/internal/owned", "policy/internal/recent", "policy/internal/tables"}, bans: []string{"os", "net", "net/http", "database/sql"}},
	"policy/internal/decision":      {imports: []string{"gate", "gate/obligation", "gate/provenance", "internal/spelling", "policy/internal/input", "policy/internal/tables"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"policy/internal/tables":        {imports: []string{"internal/match", "policy/internal/input"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"policy/internal/plain":         {bans: leaf},
	"policy/internal/fields":        {imports: []string{"policy/internal/input", "internal/spelling"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"policy/internal/input":         {imports: []string{"gate", "gate/actions", "gate/doc", "internal/forms", "gate/provenance", "policy/internal/recent"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"sanitize":                      {imports: []string{"internal/lazy"}, bans: []string{"context", "os", "net", "net/http"}},
	"internal/apikey":               {bans: leaf},
	"secrets":                       {imports: []string{"internal/apikey", "internal/lazy"}, bans: []string{"context", "os", "net", "net/http"}},
	"internal/lazy":                 {bans: leaf},
	"internal/lookalike":            {bans: leaf},
	"internal/scan":                 {imports: []string{"internal/lazy", "internal/pointer"}, bans: leaf},
	"internal/scan/report":          {imports: []string{"internal/apps", "internal/lock", "internal/pointer", "internal/product", "gate/doc", "gate", "bridge/gateway", "internal/scan", "sanitize", "bridge/gateway/status", "bridge/options"}, bans: []string{"os", "net", "net/http", "database/sql"}},
	"internal/policyfiles":          {imports: []string{"gate/provenance", "bridge/gateway", "internal/config", "bridge/dial", "internal/files", "internal/files/folder", "internal/files/watch", "policy", "internal/config/policydata", "policy/bundle"}, bans: []string{"net", "database/sql"}},
	"internal/files/watch":          {bans: []string{"net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/background":           {imports: []string{"internal/product", "gate", "gate/audit", "bridge/gateway", "internal/background/altered", "internal/config", "bridge/dial", "internal/background/documents", "internal/web/loopback", "internal/match", "internal/background/notify", "internal/background/ship", "internal/files/state", "internal/telemetry", "internal/files/watch", "internal/web", "gate/tracing"}, bans: []string{"database/sql"}},
	"internal/files/state":          {imports: []string{"internal/files"}, bans: []string{"net", "net/http", "github.com/..."}},
	"internal/modules":              {imports: []string{"gate", "bridge/gateway", "internal/modules/artifact", "internal/config", "internal/config/tree", "bridge/dial", "internal/files", "internal/schema", "internal/modules/signature", "sandbox", "bridge/recording", "internal/config/manifest"}, bans: []string{"net", "net/http", "database/sql"}},
	"sandbox":                       {imports: []string{"gate/doc", "internal/panicked", "sandbox/internal/compiler", "sandbox/internal/extism", "sandbox/internal/image", "sandbox/internal/rewrite", "sandbox/internal/wasi", "sandbox/internal/turns", "sandbox/internal/usage", "sandbox/internal/foreign", "internal/config/manifest"}, bans: []string{"net", "net/http", "github.com/modelcontextprotocol/..."}},
	"internal/modules/artifact":     {imports: []string{"internal/files", "internal/web/loopback"}, bans: []string{"database/sql"}},
	"sandbox/internal/usage":        {imports: []string{"sandbox/internal/wasi"}, bans: []string{"net", "net/http", "github.com/..."}},
	"sandbox/internal/turns":        {imports: []string{"internal/fair"}, bans: []string{"os", "net", "net/http", "github.com/..."}},
	"sandbox/internal/foreign":      {imports: []string{"sandbox/internal/rewrite"}, bans: leaf},
	"sandbox/internal/compiler":     {imports: []string{"internal/files", "sandbox/internal/rewrite"}, bans: []string{"net", "net/http"}},
	"sandbox/internal/extism":       {bans: []string{"net", "net/http", "os"}},
	"sandbox/internal/image":        {bans: []string{"context", "net"}},
	"internal/modules/kv":           {imports: []string{"bridge/options", "internal/files"}, bans: []string{"net", "github.com/..."}},
	"sandbox/internal/wasi":         {bans: []string{"net", "net/http"}},
	"sandbox/internal/rewrite":      {bans: []string{"context", "os", "net", "github.com/..."}},
	"bridge/internal/mcp":           {imports: []string{"gate", "gate/doc"}, bans: append([]string{"net", "os"}, sdk...)},
	"bridge/internal/host/sealed":   {imports: []string{"gate", "bridge/internal/mcp"}, bans: append([]string{"net", "os"}, sdk...)},
	"bridge/internal/host/elicit":   {imports: []string{"internal/escaped", "gate/doc", "gate", "bridge/internal/mcp"}, bans: append([]string{"net", "os"}, sdk...)},
	"bridge/internal/host/shares":   {bans: append([]string{"net", "os"}, sdk...)},
	"bridge/internal/host":          {imports: []string{"bridge/options", "bridge/internal/host/dispatch", "bridge/internal/host/transport"}, bans: append([]string{"os", "net", "net/http"}, sdk...)},
	"bridge/internal/host/transport": {
		imports: []string{"bridge/options", "gate", "bridge/internal/host/dispatch", "bridge/internal/host/sessions", "bridge/internal/host/message", "bridge/internal/mcp", "internal/fair", "internal/web/hungup", "internal/web/loopback", "internal/web"},
		bans:    sdk,
	},
	"bridge/internal/host/dispatch": {
		imports: []string{"internal/skills", "internal/lookalike", "internal/apps", "gate", "bridge/internal/host/sessions", "bridge/internal/host/message", "bridge/internal/host/parking", "bridge/internal/host/questions", "bridge/internal/host/sealed", "bridge/internal/host/elicit", "bridge/internal/mcp", "bridge/jobs", "gate/actions", "gate/doc", "internal/drain", "internal/product", "gate/step"},
		bans:    append([]string{"net"}, sdk...),
	},
	"bridge/internal/host/sessions": {
		imports: []string{"gate/tracing", "internal/apps", "gate", "bridge/internal/host/message", "bridge/internal/host/respond", "bridge/internal/host/shares", "bridge/internal/host/elicit", "bridge/internal/mcp", "gate/doc"},
		bans:    append([]string{"os", "net"}, sdk...),
	},
	"bridge/internal/host/message": {
		imports: []string{"gate", "bridge/internal/host/respond", "bridge/internal/host/questions", "bridge/internal/host/sealed", "bridge/internal/host/elicit", "bridge/internal/mcp", "gate/actions", "gate/codes", "gate/doc", "gate/step"},
		bans:    append([]string{"os", "net"}, sdk...),
	},
	"bridge/internal/fleet": {
		imports: []string{"bridge/internal/player", "internal/agents", "gate/step", "internal/skills", "internal/apps", "internal/product", "gate/actions", "bridge/gateway/status", "gate/doc", "gate", "bridge/internal/mcp", "bridge/internal/listing", "bridge/internal/local", "bridge/internal/upstream", "bridge/fault", "bridge/internal/upstream/wants", "internal/lookalike", "internal/scan", "bridge/options"},
		bans:    append([]string{"net", "net/http"}, sdk...),
	},
	"bridge/internal/host/respond": {
		imports: []string{},
		bans:    []string{"os", "github.com/..."},
	},
	"bridge/internal/host/parking": {
		imports: []string{"gate/step", "gate"},
		bans:    append([]string{"os", "net"}, sdk...),
	},
	"bridge/internal/host/questions": {
		imports: []string{"gate", "gate/step", "bridge/internal/mcp"},
		bans:    append([]string{"os", "net"}, sdk...),
	},
	"bridge/internal/upstream/pace": {
		bans: []string{"os", "net", "net/http", "github.com/..."},
	},
	"bridge/internal/upstream/underway": {
		imports: []string{"gate/doc", "gate", "bridge/internal/mcp", "bridge/internal/upstream/pace", "bridge/internal/upstream/wire"},
		bans:    []string{"net", "net/http", "github.com/...", "golang.org/..."},
	},
	"bridge/internal/upstream/wants": {
		imports: []string{"gate", "bridge/internal/mcp"},
		bans:    []string{"os", "net", "net/http", "github.com/...", "golang.org/..."},
	},
	"bridge/internal/upstream/rounds": {
		imports: []string{"gate", "gate/codes", "gate/actions", "gate/doc", "bridge/internal/mcp", "bridge/internal/upstream/wire"},
		bans:    append([]string{"os", "net", "net/http"}, sdk...),
	},
	"bridge/internal/guest": {
		imports: []string{"gate/step", "gate/obligation", "gate/actions", "gate", "bridge/internal/mcp", "bridge/fault", "bridge/dial", "internal/modules/kv", "sandbox", "bridge/options"},
		bans:    append([]string{"os", "net", "net/http"}, sdk...),
	},
	"bridge/internal/jobtools": {
		imports: []string{"gate/doc", "gate", "bridge/internal/host/dispatch", "bridge/jobs", "bridge/options"},
		bans:    append([]string{"os", "net", "net/http"}, sdk...),
	},
	"bridge/clean": {
		imports: []string{"bridge/internal/media", "gate/provenance", "gate", "internal/match", "secrets", "gate/session", "sanitize"},
		bans:    []string{"os", "net", "net/http", "github.com/..."},
	},
	"bridge/options":         {imports: []string{"confine", "gate"}, bans: []string{"os", "database/sql"}},
	"bridge/internal/player": {imports: []string{"bridge/gateway/status", "bridge/internal/local", "bridge/options", "bridge/recording", "gate", "gate/doc"}, bans: append([]string{"os", "net", "net/http", "database/sql"}, sdk...)},
	"bridge/recording": {
		imports: []string{"gate/codes", "gate/doc", "gate", "gate/audit", "policy/study", "bridge/fault", "bridge/gateway/status", "internal/product"},
		bans:    append([]string{"net", "net/http", "database/sql"}, sdk...),
	},
	"bridge/internal/upstream/wire/plain": {
		bans: append([]string{"os", "crypto/tls", "github.com/..."}, sdk...),
	},
	"bridge/internal/local":   {imports: []string{"internal/find", "gate", "bridge/internal/mcp", "bridge/internal/listing", "bridge/internal/upstream", "bridge/fault", "bridge/gateway/status", "bridge/options"}, bans: append([]string{"net", "net/http"}, sdk...)},
	"bridge/internal/listing": {imports: []string{"internal/skills", "internal/apps", "gate/provenance", "gate/actions", "bridge/gateway/status", "gate/doc", "gate", "bridge/internal/mcp", "internal/schema", "internal/scan", "internal/match", "internal/pointer", "bridge/options"}, bans: append([]string{"net", "net/http"}, sdk...)},
	"bridge/internal/upstream": {
		imports: []string{"internal/skills", "internal/apps", "internal/fair", "bridge/internal/listings", "internal/product", "internal/escaped", "bridge/gateway/status", "gate/doc", "confine", "internal/drain", "internal/match", "gate", "bridge/internal/mcp", "bridge/internal/listing", "bridge/fault", "bridge/internal/upstream/link", "bridge/internal/upstream/pace", "bridge/internal/upstream/rounds", "bridge/internal/upstream/underway", "bridge/internal/upstream/wants", "bridge/internal/upstream/wire", "bridge/options"},
	},
	"bridge/internal/upstream/link": {
		imports: []string{"gate/tracing", "bridge/gateway/status", "gate/doc", "gate", "bridge/internal/mcp", "bridge/fault", "bridge/internal/upstream/rounds", "bridge/internal/upstream/pace", "bridge/internal/upstream/underway", "bridge/internal/upstream/wire"},
		bans:    append([]string{"os", "net"}, sdk...),
	},
	"bridge/fault": {
		imports: []string{"bridge/internal/mcp", "bridge/internal/upstream/rounds", "bridge/internal/upstream/pace", "bridge/internal/upstream/wire"},
		bans:    append([]string{"os", "net", "net/http"}, sdk...),
	},
	"bridge/internal/upstream/wire": {imports: []string{"gate/actions", "gate/doc", "gate", "confine", "bridge/internal/mcp", "bridge/internal/upstream/wire/plain"}},
	"bridge/internal/rig":           {imports: []string{"gate/doc", "gate", "bridge/fault", "bridge/gateway/status", "bridge/options", "bridge/internal/..."}},
	"bridge/dial":                   {},
	"confine":                       {bans: []string{"net", "net/http"}},
	"internal/schema":               {imports: []string{"gate/doc", "gate", "internal/pointer"}, bans: []string{"net", "net/http"}},
	"gate/step":                     {bans: leaf},
	"gate/codes":                    {bans: leaf},
	"gate/actions":                  {bans: leaf},
	"gate/obligation":               {bans: leaf},
	"internal/panicked":             {bans: leaf},
	"internal/fair":                 {bans: leaf[1:]},
	"internal/escaped":              {bans: leaf},
	"internal/testing/gatetest":     {imports: []string{"gate"}, bans: leaf[1:]},
	"bridge/internal/listings":      {imports: []string{"gate", "internal/files"}, bans: []string{"net", "net/http", "github.com/..."}},
	"internal/lock":                 {imports: []string{"gate/doc", "gate", "internal/files", "internal/files/state", "internal/pointer", "internal/scan", "bridge/options"}, bans: []string{"net", "net/http"}},
	"bridge/gateway":                {imports: everything, bans: []string{"database/sql"}},
	"bridge/gateway/gatewaytest":    {imports: []string{"internal/product", "bridge/gateway", "gate", "gate/audit", "policy", "bridge/gateway/status", "bridge/recording"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"bridge/sqlite":                 {imports: []string{"bridge/gateway", "internal/store"}},
	"examples":                      {imports: []string{"internal/testing/program", "internal/testing/unraced"}, bans: []string{"net", "net/http", "github.com/..."}},
	"examples/embed":                {imports: []string{"bridge/gateway", "gate", "gate/audit"}},
	"examples/tool":                 {bans: []string{"net", "net/http", "github.com/..."}},
	"conformance/nodes":             {imports: []string{"internal/testing/database", "internal/testing/duplex"}, bans: []string{"github.com/..."}},
	"conformance/tasks":             {bans: []string{"github.com/..."}},
	"bridge/configured":             {imports: []string{"bridge/gateway", "internal/app", "internal/config", "internal/control", "internal/config/extract", "internal/config/edit"}},
	"internal/auth":                 {imports: []string{"internal/apikey", "gate", "gate/doc", "internal/web/loopback", "internal/files/state"}, bans: []string{"database/sql"}},
	"internal/vault":                {imports: []string{"internal/files", "internal/files/state"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/reference/keyring":    {bans: []string{"os", "net", "net/http", "database/sql"}},
	"internal/reference":            {imports: []string{"internal/config/variables", "internal/reference/keyring", "internal/vault"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/setup/registry":       {imports: []string{"internal/web/loopback"}, bans: []string{"net", "database/sql", "github.com/..."}},
	"internal/evict":                {bans: leaf},
	"internal/login":                {imports: []string{"gate", "internal/evict", "internal/vault", "internal/web/loopback", "internal/match"}, bans: []string{"database/sql"}},
	"internal/login/connect":        {imports: []string{"internal/escaped", "internal/evict", "gate", "internal/login", "internal/match", "internal/web"}, bans: []string{"os", "database/sql", "github.com/..."}},
	"cmd/internal/skillcommands":    {imports: []string{"cmd/internal/shell", "cmd/internal/show", "internal/skills/folder", "internal/app/inventory"}, bans: []string{"net", "net/http"}},
	"cmd/internal/clientconfig":     {imports: []string{"cmd/internal/shell", "internal/clients", "internal/config", "internal/setup"}, bans: []string{"net", "net/http"}},
	"cmd/internal/serverconfig":     {imports: []string{"cmd/internal/shell", "cmd/internal/show", "internal/app", "internal/modules/artifact", "internal/clients", "internal/config", "internal/config/variables", "internal/config/tree", "bridge/dial", "internal/doctor", "internal/escaped", "internal/config/extract", "internal/lock", "internal/reference", "internal/setup/registry", "internal/setup", "bridge/gateway/status", "internal/config/edit", "internal/app/inventory", "internal/app/logins", "internal/app/operation", "internal/app/pins", "internal/cluster/members", "internal/files"}, bans: []string{"net/http", "database/sql"}},
	"cmd/internal/sarif":            {imports: []string{"internal/product", "bridge/gateway", "internal/scan", "internal/scan/report"}, bans: []string{"net", "net/http"}},
	"internal/testing/bombs":        {bans: leaf},
	"internal/testing/judges":       {imports: []string{"internal/testing/toolchain"}, bans: []string{"net", "net/http", "golang.org/..."}},
	"internal/testing/database":     {bans: []string{"net/http", "github.com/...", "golang.org/..."}},
	"internal/testing/duplex":       {bans: []string{"github.com/...", "golang.org/..."}},
	"internal/testing/compiled":     {imports: []string{"sandbox"}, bans: []string{"net", "net/http", "golang.org/..."}},
	"internal/testing/freeport":     {bans: []string{"net/http", "github.com/...", "golang.org/..."}},
	"internal/testing/program":      {imports: []string{"internal/testing/toolchain"}, bans: []string{"net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/testing/timelimit":    {bans: leaf[1:]},
	"internal/testing/toolchain":    {bans: []string{"net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/testing/packages":     {bans: []string{"net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/testing/seed":         {bans: []string{"context", "net", "net/http", "github.com/...", "golang.org/..."}},
	"internal/modules/signature":    {imports: []string{"gate"}, bans: []string{"os", "net", "net/http", "github.com/..."}},
	"internal/web/hungup":           {bans: []string{"context", "net", "net/http", "github.com/..."}},
	"internal/drain":                {bans: []string{"os", "net", "github.com/...", "golang.org/..."}},
	"internal/files":                {bans: []string{"net", "net/http"}},
	"internal/clients":              {imports: []string{"internal/files"}, bans: []string{"net", "net/http"}},
	"internal/web/loopback":         {bans: []string{"context", "os", "github.com/...", "golang.org/..."}},
	"internal/app/logs":             {imports: []string{"internal/config"}, bans: []string{"net", "github.com/..."}},
	"internal/match":                {bans: leaf},
	"internal/pointer":              {bans: leaf},
	"policy/internal/recent":        {bans: leaf},
	"internal/spelling":             {bans: leaf},
	"internal/agents":               {imports: []string{"gate/codes", "gate/step", "gate/actions", "gate/doc", "gate/provenance", "gate", "bridge/options"}, bans: append([]string{"net", "net/http", "os"}, sdk...)},
	"internal/schema/broken":        {imports: []string{"bridge/gateway/status", "gate/step", "gate"}, bans: append([]string{"net", "os"}, sdk...)},
	"internal/product":              {bans: leaf},
	"internal/find":                 {imports: []string{"gate"}, bans: append([]string{}, leaf...)},
	"bridge/gateway/status":         {imports: []string{"gate", "bridge/fault", "bridge/internal/upstream/pace", "bridge/options"}, bans: append([]string{}, leaf...)},
	"bridge/internal/media":         {bans: []string{"context", "os", "net", "net/http"}},
	"internal/background/altered":   {imports: []string{"gate/codes", "gate/provenance", "gate/doc", "gate"}, bans: append([]string{}, leaf...)},
	"internal/cluster":              {imports: []string{"gate", "internal/auth", "internal/web"}, bans: []string{"database/sql", "github.com/..."}},
	"internal/app/homes":            {imports: []string{"bridge/postgres", "gate", "gate/provenance", "internal/cluster", "internal/cluster/heads", "internal/cluster/members", "internal/config", "internal/files/watch", "internal/telemetry"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/cluster/heads":        {imports: []string{"gate/audit"}, bans: []string{"database/sql", "github.com/..."}},
	"internal/cluster/members":      {imports: []string{"bridge/options", "bridge/postgres", "internal/cluster", "internal/cluster/heads", "internal/config", "internal/files/state", "internal/lock", "internal/pg", "internal/product", "internal/config/policydata"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/pg":                   {bans: []string{"net/http", "database/sql", "golang.org/..."}},
	"bridge/postgres":               {imports: []string{"bridge/options", "gate", "gate/codes", "gate/approval", "bridge/jobs", "internal/modules/kv", "internal/pg", "gate/limits", "gate/session"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/config/dirs":          {bans: []string{"context", "net", "net/http", "github.com/..."}},
	"internal/app/traits":           {imports: []string{"gate"}, bans: []string{"os", "net", "net/http", "github.com/..."}},
	"internal/app/unknown":          {imports: []string{"gate", "internal/app", "internal/config", "internal/match", "internal/spelling", "internal/app/naming", "internal/config/policydata", "internal/app/inventory"}, bans: []string{"net", "net/http", "github.com/..."}},
	"internal/app/paused":           {imports: []string{"internal/files/state", "internal/app/operation"}, bans: []string{"net", "net/http", "github.com/..."}},
	"internal/draft/learn":          {imports: []string{"gate/provenance", "gate/doc", "gate", "policy", "policy/study", "internal/match"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"internal/background/documents": {bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/background/notify":    {imports: []string{"confine", "internal/telemetry"}, bans: []string{"database/sql"}},
	"internal/doctor":               {imports: []string{"internal/cluster/members", "internal/escaped", "internal/app", "internal/config", "internal/files", "internal/hook/install", "internal/policyfiles", "policy", "internal/files/watch", "bridge/gateway/status", "internal/app/inventory", "internal/app/operation", "internal/app/overview"}, bans: []string{"net/http", "database/sql"}},
	"internal/replay":               {imports: []string{"internal/escaped", "internal/match", "gate/provenance", "gate/actions", "internal/product", "gate/doc", "gate", "gate/audit", "bridge/gateway", "policy", "internal/policyfiles", "internal/schema", "gate/session", "internal/structure", "internal/config/policydata", "policy/study", "internal/app/inventory"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/app/handover":         {bans: []string{"net", "net/http", "os", "github.com/...", "golang.org/..."}},
	"internal/config/extract":       {imports: []string{"internal/config", "internal/config/variables"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"internal/setup":                {imports: []string{"internal/clients", "internal/escaped", "gate", "internal/config", "internal/config/tree", "confine", "internal/draft", "internal/config/extract", "internal/files", "internal/match", "internal/lock", "internal/config/edit", "internal/config/hosts", "internal/config/policydata"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/audit/flow":           {imports: []string{"gate", "gate/audit"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/audit/index":          {imports: []string{"gate", "gate/audit", "internal/files"}, bans: []string{"net", "net/http", "database/sql", "github.com/...", "golang.org/..."}},
	"internal/background/ship":      {imports: []string{"internal/forms", "gate/step", "gate/codes", "gate/actions", "gate/doc", "gate", "gate/audit", "internal/files", "internal/telemetry"}, bans: []string{"database/sql"}},
	"internal/testing/unraced":      {bans: []string{"net", "net/http", "github.com/..."}},
	"internal/app/systemd":          {bans: []string{"context", "net/http", "github.com/...", "golang.org/..."}},
	"internal/telemetry":            {imports: []string{"gate/tracing", "gate/step", "gate/codes", "gate"}, bans: []string{"os", "database/sql"}},
	"internal/structure":            {imports: []string{"gate/doc", "gate"}, bans: []string{"context", "os", "net"}},
	"internal/address":              {bans: []string{"context", "os", "net/http", "github.com/...", "golang.org/..."}},
	"cmd/internal/arch":             {},
	"cmd/internal/arch/measure":     {imports: []string{"cmd/internal/arch"}},
	"cmd/internal/arch/passed":      {imports: []string{"bridge/configured", "bridge/gateway", "cmd/internal/arch"}},
	"internal/config":               {imports: []string{"internal/apps", "internal/clients", "gate/actions", "internal/files", "internal/config/dirs", "internal/config/envfile", "internal/config/variables", "internal/lookalike", "internal/web/loopback", "internal/spelling", "internal/config/tree", "internal/config/check", "internal/config/decode", "internal/config/hosts"}},
	"internal/config/check":         {imports: []string{"internal/web/loopback"}, bans: []string{"context", "net/http", "database/sql", "github.com/..."}},
	"internal/config/decode":        {imports: []string{"internal/config/check", "internal/config/tree", "internal/config/variables", "internal/spelling"}, bans: []string{"context", "os", "net", "net/http", "database/sql", "github.com/..."}},
	"internal/config/hosts":         {imports: []string{"internal/config/decode", "internal/config/tree", "internal/config/variables", "internal/spelling"}, bans: []string{"context", "os", "net", "net/http", "database/sql"}},
	"internal/config/edit":          {imports: []string{"internal/config", "internal/config/decode", "internal/config/tree", "internal/files"}, bans: []string{"context", "net", "net/http", "database/sql", "github.com/..."}},
	"internal/config/policydata":    {imports: []string{"internal/config/check", "internal/config/decode", "internal/config/tree", "internal/files", "internal/files/state", "internal/match"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/config/manifest":      {imports: []string{"internal/config/check", "internal/config/decode", "internal/config/tree", "internal/pointer"}, bans: []string{"context", "net", "net/http", "database/sql", "github.com/..."}},
	"internal/config/cases":         {imports: []string{"internal/config", "internal/config/check", "internal/config/decode", "internal/config/tree"}, bans: []string{"context", "net", "net/http", "database/sql", "github.com/..."}},
	"internal/config/tree":          {bans: []string{"net", "net/http"}},
	"internal/config/envfile":       {bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/config/variables":     {bans: leaf},
	"cmd/internal/granted":          {imports: []string{"bridge/options", "bridge/dial", "internal/modules/kv", "sandbox"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/trial":            {imports: []string{"gate/step", "gate/doc", "cmd/internal/canned", "cmd/internal/granted", "gate", "internal/config/tree", "bridge/dial", "internal/schema", "internal/spelling", "sandbox", "internal/config/cases"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/canned":           {imports: []string{"gate", "bridge/dial", "internal/config/tree", "internal/config/cases"}},
	"internal/control":              {imports: []string{"internal/files", "internal/control/socket"}},
	"internal/control/socket":       {bans: []string{"net/http", "github.com/...", "golang.org/..."}},
	"internal/hook":                 {imports: []string{"internal/control/socket"}, bans: []string{"net/http", "github.com/...", "golang.org/..."}},
	"internal/hook/install":         {imports: []string{"gate", "internal/clients", "internal/hook"}, bans: []string{"net", "net/http"}},
	"cmd/wasmgate-hook":             {imports: []string{"internal/hook"}, bans: []string{"github.com/...", "golang.org/..."}},
	"cmd/internal/toollist":         {imports: []string{"cmd/internal/show", "gate", "gate/audit", "internal/app/inventory"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/dojo":             {},
	"cmd/internal/scripts/start":    {},
	"cmd/internal/scripts/calls":    {},
	"cmd/internal/scripts/records":  {},
	"cmd/internal/scripts/policy":   {},
	"cmd/internal/scripts/modules":  {},
	"internal/testing/scripts":      {imports: []string{"internal/testing/compiled", "internal/testing/program", "internal/testing/toolchain", "internal/testing/unraced"}},
	"cmd/internal/e2e":              {},
	"cmd/internal/e2e/gateway":      {},
	"cmd/internal/e2e/real":         {},
	"cmd/internal/e2e/modules":      {},
	"cmd/internal/e2e/guide":        {},
	"internal/testing/e2e":          {imports: []string{"internal/testing/compiled", "internal/testing/program", "internal/testing/timelimit", "internal/testing/toolchain", "internal/testing/unraced"}},
	"cmd/internal/release":          {bans: []string{"net", "net/http"}},
	"internal/config/except":        {imports: []string{"gate", "gate/audit", "internal/config", "internal/files", "internal/match"}, bans: []string{"net", "net/http", "database/sql"}},
	"internal/console":              {imports: []string{"bridge/gateway", "bridge/gateway/status", "gate", "gate/actions", "gate/audit", "gate/codes", "internal/app", "internal/app/approvals", "internal/app/callers", "internal/app/desks", "internal/app/exceptions", "internal/app/inventory", "internal/app/naming", "internal/app/overview", "internal/app/paused", "internal/app/pins", "internal/app/policies", "internal/app/sessions", "internal/app/settings", "internal/audit/flow", "internal/audit/index", "internal/config/except", "internal/config/policydata", "internal/config/tree", "internal/console/pages", "internal/console/signin", "internal/escaped", "internal/evict", "internal/lock", "internal/match", "internal/policyfiles", "internal/replay", "internal/web", "internal/web/loopback", "policy", "policy/study"}, bans: []string{"database/sql"}},
	"internal/console/pages":        {imports: []string{"bridge/gateway/status", "gate/audit", "gate/codes", "internal/audit/flow", "internal/escaped", "internal/lock", "internal/match", "internal/product", "internal/replay"}, bans: []string{"os", "net", "database/sql", "github.com/..."}},
	"internal/console/signin":       {imports: []string{"gate", "internal/console/pages", "internal/evict", "internal/login", "internal/match"}, bans: []string{"os", "database/sql", "github.com/..."}},
	"cmd/internal/probe":            {bans: []string{"github.com/..."}},
	"cmd/internal/soak":             {imports: []string{"gate/codes", "gate", "gate/audit"}},
	"cmd/internal/starter":          {},
	"internal/auth/authtest":        {bans: []string{"os"}},
	"cmd/internal/browser":          {bans: []string{"github.com/..."}},
	"cmd/internal/memory":           {bans: []string{"net", "net/http", "github.com/..."}},
	"cmd/internal/show":             {imports: []string{"internal/escaped", "internal/lock", "internal/scan"}, bans: []string{"net", "net/http"}},
	"internal/web":                  {imports: []string{"internal/files/watch"}, bans: []string{"github.com/..."}},
	"internal/app/naming":           {imports: []string{"gate", "internal/config", "internal/match", "internal/product", "policy"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/translation":      {imports: []string{"bridge/clean", "bridge/dial", "bridge/gateway", "bridge/jobs", "bridge/options", "bridge/recording", "bridge/sqlite", "confine", "gate", "gate/audit", "gate/session", "internal/apps", "internal/config", "internal/config/variables", "internal/files/watch", "internal/lock", "internal/match", "internal/modules", "internal/reference", "internal/skills/folder", "secrets"}, bans: []string{"net", "database/sql", "github.com/..."}},
	"internal/app/approvals":        {imports: []string{"bridge/gateway", "gate", "gate/approval", "gate/obligation", "gate/provenance", "internal/app/naming", "internal/app/operation", "internal/app/policies", "internal/auth", "internal/config", "internal/config/policydata", "internal/escaped", "internal/files/state", "internal/match", "policy"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/callers":          {imports: []string{"bridge/dial", "gate", "gate/audit", "gate/codes", "internal/apikey", "internal/app/naming", "internal/app/operation", "internal/app/translation", "internal/auth", "internal/config", "internal/config/policydata", "internal/files/state", "internal/login", "internal/match", "internal/vault", "internal/web"}, bans: []string{"database/sql", "github.com/..."}},
	"internal/app/calls":            {imports: []string{"bridge/gateway", "gate", "gate/approval", "gate/step", "internal/app/naming", "internal/app/operation", "internal/config", "internal/control", "internal/product"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/desks":            {imports: []string{"internal/app/operation", "internal/config", "internal/web"}, bans: []string{"database/sql", "github.com/..."}},
	"internal/app/exceptions":       {imports: []string{"gate", "internal/app/operation", "internal/config", "internal/config/except", "policy"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/inventory":        {imports: []string{"bridge/gateway", "gate", "internal/app/naming", "internal/app/operation", "internal/app/traits", "internal/config", "internal/find", "internal/scan/report", "internal/skills", "policy", "policy/study"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/logins":           {imports: []string{"bridge/gateway", "bridge/options", "gate", "gate/audit", "gate/codes", "internal/app/callers", "internal/app/operation", "internal/app/translation", "internal/config", "internal/login", "internal/login/connect", "internal/reference/keyring", "internal/vault"}, bans: []string{"net", "database/sql", "github.com/..."}},
	"internal/app/operation":        {imports: []string{"gate/approval"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/overview":         {imports: []string{"bridge/gateway", "bridge/gateway/status", "bridge/jobs", "bridge/postgres", "confine", "gate", "internal/app/approvals", "internal/app/desks", "internal/app/naming", "internal/app/operation", "internal/app/paused", "internal/app/pins", "internal/app/policies", "internal/app/settings", "internal/app/translation", "internal/background", "internal/background/altered", "internal/background/notify", "internal/config", "internal/policyfiles", "internal/product", "internal/telemetry", "policy"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/pins":             {imports: []string{"bridge/gateway", "bridge/gateway/status", "gate", "internal/app/operation", "internal/config", "internal/files/watch", "internal/lock"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/policies":         {imports: []string{"bridge/gateway", "bridge/gateway/status", "gate", "internal/app/naming", "internal/app/operation", "internal/app/translation", "internal/config", "internal/config/policydata", "internal/files/state", "internal/match", "internal/policyfiles", "internal/product", "policy", "policy/study"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/sessions":         {imports: []string{"gate", "gate/session", "internal/app/operation"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app/settings":         {imports: []string{"bridge/fault", "bridge/gateway", "bridge/gateway/status", "internal/app/approvals", "internal/app/callers", "internal/app/logins", "internal/app/logs", "internal/app/policies", "internal/app/translation", "internal/background", "internal/config", "internal/files/watch", "internal/modules", "internal/policyfiles", "internal/web"}, bans: []string{"net", "net/http", "database/sql", "github.com/..."}},
	"internal/app":                  {imports: everything},

	"cmd/internal/shell":              {imports: []string{"cmd/internal/show", "gate", "internal/app", "internal/app/logs", "internal/config", "internal/control", "internal/escaped", "internal/lock", "internal/product", "internal/replay", "internal/scan/report", "bridge/gateway/status", "internal/app/naming", "internal/app/approvals", "internal/app/calls", "internal/app/operation", "internal/app/overview", "internal/app/sessions"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/policycommands":     {imports: []string{"bridge/gateway", "cmd/internal/shell", "cmd/internal/show", "gate", "gate/codes", "internal/app", "internal/app/unknown", "gate/audit", "internal/background", "internal/cluster/members", "internal/config", "internal/config/tree", "internal/files/state", "gate/doc", "internal/draft", "internal/draft/learn", "internal/match", "policy", "internal/policyfiles", "gate/provenance", "internal/replay", "internal/structure", "internal/app/naming", "internal/config/policydata", "policy/study", "internal/app/inventory", "internal/app/operation", "internal/app/policies"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/sandboxcommands":    {imports: []string{"cmd/internal/granted", "cmd/internal/shell", "cmd/internal/show", "cmd/internal/starter", "cmd/internal/trial", "internal/config", "bridge/dial", "internal/files", "internal/modules", "sandbox", "internal/config/cases", "internal/config/manifest"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/identitycommands":   {imports: []string{"cmd/internal/browser", "cmd/internal/shell", "cmd/internal/show", "internal/app", "internal/auth", "internal/login", "internal/match", "internal/product", "internal/app/approvals", "internal/app/callers", "internal/app/logins", "internal/app/operation"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/clustercommands":    {imports: []string{"bridge/postgres", "cmd/internal/shell", "cmd/internal/show", "internal/cluster/members", "internal/doctor"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/auditcommands":      {imports: []string{"cmd/internal/shell", "cmd/internal/show", "gate", "gate/actions", "gate/audit", "internal/audit/flow", "internal/background", "internal/background/ship", "internal/config/except", "internal/match", "internal/product", "internal/app/exceptions", "internal/app/operation", "internal/app/sessions"}, bans: []string{"net/http", "database/sql"}},
	"cmd/internal/definitioncommands": {imports: []string{"cmd/internal/sarif", "cmd/internal/shell", "cmd/internal/show", "gate", "internal/config", "internal/lock", "internal/scan", "internal/scan/report", "internal/app/naming", "internal/app/inventory", "internal/app/operation", "internal/app/pins"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/approvalcommands":   {imports: []string{"cmd/internal/shell", "cmd/internal/show", "gate", "internal/app", "internal/escaped", "internal/app/approvals", "internal/app/operation"}, bans: []string{"net", "net/http", "database/sql"}},
	"cmd/internal/hookcommands":       {imports: []string{"cmd/internal/shell", "cmd/internal/show", "internal/app", "internal/config", "internal/control", "internal/hook", "internal/hook/install"}, bans: []string{"net", "net/http", "database/sql"}},

	"cmd/wasmgate": {imports: everything},
}

// wrapped are the dependencies that one package of ours hides from the others.
var wrapped = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk": {"bridge/gateway", "bridge/options", "bridge/internal/upstream", "bridge/internal/upstream/wire", "bridge/internal/rig", "cmd/internal/soak", "internal/login", "internal/testing/e2e"},
	"github.com/google/jsonschema-go":        {"bridge/gateway"}, // of the program's own types, never of what a server sends
	"github.com/santhosh-tekuri/jsonschema":  {"internal/schema"},
	"github.com/open-policy-agent/opa":       {"policy", "policy/bundle", "policy/internal/decision", "policy/internal/engine", "policy/internal/fields", "policy/internal/input", "policy/internal/tables", "policy/study"},
	"github.com/tetratelabs/wazero":          {"sandbox", "sandbox/internal/compiler", "sandbox/internal/extism", "sandbox/internal/wasi"},
	"oras.land/oras-go":                      {"internal/modules/artifact"},
	"github.com/opencontainers":              {"internal/modules/artifact", "cmd/internal/release"},
	"github.com/microcosm-cc/bluemonday":     {"sanitize"},
	"golang.org/x/net/html":                  {"sanitize"},
	"github.com/go-jose/go-jose":             {"internal/auth", "internal/auth/authtest", "internal/login"},
	"github.com/zalando/go-keyring":          {"internal/reference/keyring"},
	"github.com/spf13/cobra":                 {"cmd/internal/approvalcommands", "cmd/internal/auditcommands", "cmd/internal/clientconfig", "cmd/internal/clustercommands", "cmd/internal/definitioncommands", "cmd/internal/hookcommands", "cmd/internal/identitycommands", "cmd/internal/policycommands", "cmd/internal/sandboxcommands", "cmd/internal/serverconfig", "cmd/internal/shell", "cmd/internal/skillcommands", "cmd/wasmgate"},
	"modernc.org/sqlite":                     {"internal/store"},
	"github.com/jackc/pgx":                   {"bridge/postgres", "internal/pg"},
	"github.com/prometheus":                  {"internal/telemetry"},
	"go.opentelemetry.io/proto/otlp":         {"internal/telemetry", "internal/background/ship"},
	"github.com/goccy/go-yaml":               {"internal/clients", "internal/config/policydata", "internal/config/except", "internal/config/tree", "internal/skills", "internal/structure"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func covers(pattern, path string) bool {
	prefix, ok := strings.CutSuffix(pattern, "...")
	return pattern == path || ok && strings.HasPrefix(path, prefix)
}

func TestImports(t *testing.T) {
	all := packages(t)
	if len(all) < len(rules) {
		t.Errorf("%d packages for %d rules: a rule has no package any more", len(all), len(rules))
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		r, ok := rules[name]
		if !ok {
			t.Errorf("package %s has no rule: decide what it may import, and add it to the rules", name)
			continue
		}
		for _, path := range p.Imports {
			if path == module+"bridge/internal/rig" {
				t.Errorf("package %s must not import %s, which is for tests", name, path)
			}
			if own, ok := strings.CutPrefix(path, module); ok && !slices.ContainsFunc(r.imports, func(s string) bool { return covers(s, own) }) {
				t.Errorf("package %s must not import %s", name, own)
			}
			if !strings.HasPrefix(path, module) && slices.ContainsFunc(r.bans, func(s string) bool { return covers(s, path) }) {
				t.Errorf("package %s must not import %s", name, path)
			}
			for dep, owners := range wrapped {
				if (path == dep || strings.HasPrefix(path, dep+"/")) && !slices.Contains(owners, name) {
					t.Errorf("package %s must not import %s: only %v may", name, path, owners)
				}
			}
		}
	}
}

// A rule that allows everything would hide every mistake: the test itself is
// tested.
func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"gate", "gate", true}, {"gate", "gate/audit", false}, {"...", "gate", true},
		{"github.com/...", "github.com/x/y", true}, {"github.com/...", "net/http", false},
	} {
		if got := covers(tt.pattern, tt.path); got != tt.want {
			t.Errorf("covers(%q, %q) = %v", tt.pattern, tt.path, got)
		}
	}
}

// A program that embeds a gateway, and keeps its jobs in memory, links no database.
func TestWithoutDatabase(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./bridge/gateway")
	list.Dir = "../../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if all := string(out); !strings.Contains(all, "bridge/internal/host") || strings.Contains(all, "modernc.org") {
		t.Error("bridge/gateway needs a database, or is not what was listed")
	}
}
