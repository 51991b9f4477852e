//go:build !purego

#include "textflag.h"

// func Pointer(p unsafe.Pointer) unsafe.Pointer
TEXT ·Pointer(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD R0, ret+8(FP)
	RET
