// Package model has a model of the state machine and its lease. Its tests explore everything that can happen within
// bounds: every order of events, passes, crashes and lost answers.
package model
