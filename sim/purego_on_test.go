//go:build purego

package sim

const pureGo = true
