/* The weights, placed into the object by the assembler. */
	.section .rodata.weights, "a"
	.globl running_weights
	.hidden running_weights
	.balign 4096
running_weights:
	.incbin "weights.bin"
	.section .note.GNU-stack, "", %progbits
