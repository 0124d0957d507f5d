// Package model has a model of the state machine and of the lease that it works with, and explores all that can happen to
// them: every order of events, passes, crashes and lost answers, within bounds. It is there for its tests.
package model
