//go:build !race

package coir_test

const raceEnabled = false
