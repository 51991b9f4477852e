//go:build !purego

#include "textflag.h"

// func G() uintptr
TEXT ·G(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET

// func gAt(off uintptr) *uintptr
TEXT ·gAt(SB), NOSPLIT, $0-16
	MOVQ (TLS), AX
	ADDQ off+0(FP), AX
	MOVQ AX, ret+8(FP)
	RET

// func CallerPC() uintptr
// A Go function with a frame keeps its caller's frame pointer at 0(BP) and its own return address at 8(BP). This stub
// has no frame, so BP is still that of the function that called it.
TEXT ·CallerPC(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ 8(BP), AX
	MOVQ AX, ret+0(FP)
	RET
