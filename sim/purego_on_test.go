//go:build !(amd64 || arm64) || purego

package sim

const pureGo = true
