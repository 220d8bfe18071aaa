package console

// A conflict says that what was to be changed is not what was seen any more.
type conflict struct{ what string }

func (e *conflict) Error() string { return e.what + " was changed after you loaded it: look again" }

// A missing says that there is no such thing.
type missing struct{ what string }

func (e *missing) Error() string { return "there is no " + e.what }

// A misused says what is wrong with a request.
type misused struct{ what string }

func (e *misused) Error() string { return e.what }
