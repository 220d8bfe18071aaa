package clients

import "golang.org/x/sys/windows"

// owner returns who a file belongs to; of a link, what it leads to, as the system has it.
func owner(path string) (string, error) {
	d, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return "", err
	}
	sid, _, err := d.Owner()
	if err != nil {
		return "", err
	}
	return sid.String(), nil
}

// self is who runs this process.
func self() string {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return ""
	}
	return user.User.Sid.String()
}

// administers reports whether a user is the system or the group of administrators.
func administers(user string) bool { return user == "S-1-5-18" || user == "S-1-5-32-544" }
