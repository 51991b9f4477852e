package maps

import (
	"internal/abi"
	"internal/coir"
	"unsafe"
)

// coirHash hashes a key of a map. Instead of the addresses in the key it hashes their numbers; see coir_map.go in
// package runtime.
func coirHash(typ *abi.MapType, key unsafe.Pointer, seed uintptr) uintptr {
	if coirNumbers(typ) {
		return coirTypehash(typ.Key, key, seed)
	}
	return typ.Hasher(key, seed)
}

// coirNumbers reports whether the hasher of a map may hash addresses. It returns false for keys of interface type,
// because their hasher calls typehash anyway.
func coirNumbers(typ *abi.MapType) bool {
	if !coir.Explores {
		return false
	}
	switch typ.Key.Kind() {
	case abi.Pointer, abi.UnsafePointer, abi.Chan, abi.Array, abi.Struct:
		return typ.Key.Pointers()
	}
	return false
}

//go:linkname coirTypehash runtime.typehash
//go:noescape
func coirTypehash(t *abi.Type, p unsafe.Pointer, h uintptr) uintptr
