package atomic

import (
	"internal/coir"
	"internal/runtime/sys"
	"unsafe"
)

// The functions of this package, each with a point for `coir test -atomics`. They call the original functions, whose
// names now begin with coir; see the edits of doc.go and asm.s. The compiler replaces calls of these functions by
// single instructions, unless a flag forbids that. The command sets the flag for packages outside of the standard
// library. With -race the compiler always calls the functions.

//go:linkname coirPointAt
//go:noescape
func coirPointAt(op uint8, p unsafe.Pointer, pc uintptr)

// Package runtime uses these to store pointers.
//
//go:linkname coirStoreUintptr
//go:linkname coirSwapUintptr
//go:linkname coirCompareAndSwapUintptr

func LoadInt32(addr *int32) (val int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadInt32(addr)
}

func LoadInt64(addr *int64) (val int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadInt64(addr)
}

func LoadUint32(addr *uint32) (val uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadUint32(addr)
}

func LoadUint64(addr *uint64) (val uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadUint64(addr)
}

func LoadUintptr(addr *uintptr) (val uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadUintptr(addr)
}

func LoadPointer(addr *unsafe.Pointer) (val unsafe.Pointer) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicLoad, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirLoadPointer(addr)
}

func StoreInt32(addr *int32, val int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicStore, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	coirStoreInt32(addr, val)
}

func StoreInt64(addr *int64, val int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicStore, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	coirStoreInt64(addr, val)
}

func StoreUint32(addr *uint32, val uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicStore, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	coirStoreUint32(addr, val)
}

func StoreUint64(addr *uint64, val uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicStore, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	coirStoreUint64(addr, val)
}

func StoreUintptr(addr *uintptr, val uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicStore, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	coirStoreUintptr(addr, val)
}

func SwapInt32(addr *int32, new int32) (old int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicSwap, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirSwapInt32(addr, new)
}

func SwapInt64(addr *int64, new int64) (old int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicSwap, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirSwapInt64(addr, new)
}

func SwapUint32(addr *uint32, new uint32) (old uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicSwap, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirSwapUint32(addr, new)
}

func SwapUint64(addr *uint64, new uint64) (old uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicSwap, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirSwapUint64(addr, new)
}

func SwapUintptr(addr *uintptr, new uintptr) (old uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicSwap, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirSwapUintptr(addr, new)
}

func CompareAndSwapInt32(addr *int32, old, new int32) (swapped bool) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicCAS, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirCompareAndSwapInt32(addr, old, new)
}

func CompareAndSwapInt64(addr *int64, old, new int64) (swapped bool) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicCAS, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirCompareAndSwapInt64(addr, old, new)
}

func CompareAndSwapUint32(addr *uint32, old, new uint32) (swapped bool) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicCAS, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirCompareAndSwapUint32(addr, old, new)
}

func CompareAndSwapUint64(addr *uint64, old, new uint64) (swapped bool) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicCAS, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirCompareAndSwapUint64(addr, old, new)
}

func CompareAndSwapUintptr(addr *uintptr, old, new uintptr) (swapped bool) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicCAS, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirCompareAndSwapUintptr(addr, old, new)
}

func AddInt32(addr *int32, delta int32) (new int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicAdd, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAddInt32(addr, delta)
}

func AddInt64(addr *int64, delta int64) (new int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicAdd, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAddInt64(addr, delta)
}

func AddUint32(addr *uint32, delta uint32) (new uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicAdd, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAddUint32(addr, delta)
}

func AddUint64(addr *uint64, delta uint64) (new uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicAdd, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAddUint64(addr, delta)
}

func AddUintptr(addr *uintptr, delta uintptr) (new uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicAdd, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAddUintptr(addr, delta)
}

func AndInt32(addr *int32, mask int32) (old int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAndInt32(addr, mask)
}

func AndInt64(addr *int64, mask int64) (old int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAndInt64(addr, mask)
}

func AndUint32(addr *uint32, mask uint32) (old uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAndUint32(addr, mask)
}

func AndUint64(addr *uint64, mask uint64) (old uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAndUint64(addr, mask)
}

func AndUintptr(addr *uintptr, mask uintptr) (old uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirAndUintptr(addr, mask)
}

func OrInt32(addr *int32, mask int32) (old int32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirOrInt32(addr, mask)
}

func OrInt64(addr *int64, mask int64) (old int64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirOrInt64(addr, mask)
}

func OrUint32(addr *uint32, mask uint32) (old uint32) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirOrUint32(addr, mask)
}

func OrUint64(addr *uint64, mask uint64) (old uint64) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirOrUint64(addr, mask)
}

func OrUintptr(addr *uintptr, mask uintptr) (old uintptr) {
	if coir.Atomics {
		coirPointAt(coir.OpAtomicBits, unsafe.Pointer(addr), sys.GetCallerPC())
	}
	return coirOrUintptr(addr, mask)
}
