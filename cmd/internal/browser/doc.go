// Package browser opens pages in the browser of the user, so that no other user learns their addresses.
package browser
