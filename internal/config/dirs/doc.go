// Package dirs finds the folders in which a person keeps configurations and programs their state.
package dirs
