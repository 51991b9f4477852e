//go:build !purego

#include "textflag.h"

// func G() uintptr
TEXT ·G(SB), NOSPLIT, $0-4
	MOVL (TLS), AX
	MOVL AX, ret+0(FP)
	RET

// func gAt(off uintptr) *uintptr
TEXT ·gAt(SB), NOSPLIT, $0-8
	MOVL (TLS), AX
	ADDL off+0(FP), AX
	MOVL AX, ret+4(FP)
	RET
