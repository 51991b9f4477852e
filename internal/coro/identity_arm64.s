//go:build !purego

#include "textflag.h"

// func G() uintptr
TEXT ·G(SB), NOSPLIT, $0-8
	MOVD g, R0
	MOVD R0, ret+0(FP)
	RET

// func gAt(off uintptr) *uintptr
TEXT ·gAt(SB), NOSPLIT, $0-16
	MOVD off+0(FP), R0
	ADD g, R0
	MOVD R0, ret+8(FP)
	RET

// func CallerPC() uintptr
// A Go function with a frame keeps its caller's frame pointer at 0(R29) and its own return address at 8(R29). This stub
// has no frame, so R29 is still that of the function that called it.
TEXT ·CallerPC(SB), NOSPLIT|NOFRAME, $0-8
	MOVD 8(R29), R0
	MOVD R0, ret+0(FP)
	RET
