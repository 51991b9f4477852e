//go:build !purego

#include "textflag.h"

// func Pointer(p unsafe.Pointer) unsafe.Pointer
TEXT ·Pointer(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ AX, ret+8(FP)
	RET
