package bridge_test

import "testing"

func TestMain(m *testing.M) { serve(m, map[string]func(){"torture": torture}) }
