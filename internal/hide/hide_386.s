//go:build !purego

#include "textflag.h"

// func Pointer(p unsafe.Pointer) unsafe.Pointer
TEXT ·Pointer(SB), NOSPLIT, $0-8
	MOVL p+0(FP), AX
	MOVL AX, ret+4(FP)
	RET
