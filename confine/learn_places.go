package confine

import (
	"path/filepath"
	"slices"
	"strings"
)

// places are the names by which a proposal knows what it leaves out: below home, with
// links resolved, and hidden ones below any other folder.
type places struct {
	names []string
	real  []string // where those below home are
}

func newPlaces(homes, names []string) places {
	p := places{names: names}
	for _, home := range homes {
		for _, name := range names {
			at := filepath.Join(home, name)
			p.real = append(p.real, at)
			if real, err := filepath.EvalSymlinks(at); err == nil && !slices.Contains(p.real, real) {
				p.real = append(p.real, real)
			}
		}
	}
	return p
}

// have reports whether path is one of the places or in one.
func (p places) have(path string) bool {
	return beneathAny(path, p.real) || slices.ContainsFunc(p.names, func(name string) bool { return name[0] == '.' && holds(path, name) })
}

// below reports whether one of the places is in a folder.
func (p places) below(folder string) bool {
	return slices.ContainsFunc(p.real, func(at string) bool { return at != folder && beneath(at, folder) })
}

// keyPlaces hold keys, tokens and what people have typed.
var keyPlaces = []string{
	".ssh", ".gnupg", ".pki", ".password-store", ".local/share/gopass", ".local/share/keyrings", ".local/share/kwalletd", ".config/sops", ".config/age",
	".config/op", ".config/1Password", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/keepassxc", ".config/keybase", ".vault-token", ".age",
	".aws", ".azure", ".config/gcloud", ".boto", ".oci", ".s3cfg", ".config/rclone", ".config/doctl", ".config/hcloud", ".config/scw", ".config/flyctl", ".fly", ".ibmcloud",
	".kube", ".docker", ".config/containers/auth.json", ".terraform.d", ".terraformrc", ".config/helm", ".config/pulumi", ".pulumi",
	".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".config/configstore", ".pypirc", ".config/pip", ".pip", ".config/pypoetry", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget/NuGet", ".config/NuGet",
	".composer/auth.json", ".config/composer/auth.json", ".hex", ".config/huggingface", ".cache/huggingface/token", ".huggingface",
	".pgpass", ".my.cnf", ".mylogin.cnf", ".config/mysql", ".dbshell", ".config/dbeaver", ".local/share/DBeaverData",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	".config/Slack", ".config/discord", ".config/Signal", ".local/share/TelegramDesktop", ".purple", ".config/Element", ".config/evolution", ".local/share/evolution",
	".bitcoin", ".ethereum", ".electrum", ".config/solana", ".config/Exodus", ".config/openvpn", ".config/wireguard", ".cert", ".local/share/networkmanagement",
	".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot", ".config/goose", ".local/share/opencode/auth.json",
	".bash_history", ".zsh_history", ".zhistory", ".histfile", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo",
}

// loginPlaces hold what runs when their user signs in, opens a shell, or starts one of
// many programs.
var loginPlaces = []string{
	".profile", ".login", ".logout", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc",
	".mkshrc", ".cshrc", ".tcshrc", ".inputrc", ".config/fish", ".config/nushell", ".config/zsh", ".oh-my-zsh", ".config/starship.toml", ".config/direnv",
	".pam_environment", ".config/environment.d", ".config/systemd", ".local/share/systemd", ".config/autostart", ".config/autostart-scripts", ".config/upstart",
	".config/plasma-workspace", ".local/share/applications", ".local/share/dbus-1", ".config/hypr", ".config/sway", ".config/i3", ".i3", ".config/awesome",
	".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".Xresources", ".config/openbox",
	".local/bin", "bin", ".cargo/bin", "go/bin", ".npm-global/bin", ".bun/bin", ".deno/bin", ".pyenv/shims", ".asdf/shims", ".local/share/mise", ".nvm", ".local/lib",
	".gitconfig", ".config/git", ".hgrc", ".vim", ".vimrc", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".nanorc", ".tmux.conf", ".config/tmux", ".screenrc",
	".gdbinit", ".lldbinit", ".pdbrc", ".pythonrc", ".irbrc", ".Rprofile", ".config/Code", ".vscode", ".vscode-server", ".config/Cursor", ".cursor",
	".claude", ".codex", ".gemini", ".config/opencode", ".config/claude", ".config/zed",
}

// beneath reports whether path is folder or in it.
func beneath(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

func beneathAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return beneath(path, f) })
}

// holds reports whether a path has a name, or several with slashes between, in it.
func holds(path, name string) bool { return strings.Contains(path+"/", "/"+name+"/") }
