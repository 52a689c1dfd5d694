/* What x86-64 does better than generic vector code: intrinsics by operation and type. */
#include "ir/loop/prelude.h"

#define N ROW_NATIVE
#define NV (ROW_NATIVE | ROW_VECTOR)

/* Comparison of every kind into mask registers. */
#define COMPARE(op, f, i)                                                                           \
	{op, SET_BOOL, SET_FLOAT, NV | ROW_BITS, "$P_cmp_$E_mask($a, $b, _CMP_" f ")", NULL},       \
		{op,  SET_BOOL, SET_INT, NV | ROW_BITS, "$P_cmp_$E_mask($a, $b, _MM_CMPINT_" i ")", \
		 NULL},                                                                             \
	{                                                                                           \
		op, SET_BOOL, SET_SMALL, ROW_VECTOR | ROW_BITS | ROW_WIDE,                          \
			"$fn[" op ":bool:i32:L](__builtin_convertvector(a, $[i32]), "               \
			"__builtin_convertvector(b, $[i32]))",                                      \
			NULL                                                                        \
	}

#define ROUND(op, mode)                                                                            \
	{op, SET_FLOAT, SET_FLOAT, NV | ROW_512, "($T)$P_roundscale_$E($a, " mode ")", NULL},      \
	{                                                                                          \
		op, SET_FLOAT, SET_FLOAT, NV | ROW_NARROW, "($T)$P_round_$E($a, " mode ")", NULL   \
	}

/* The instruction gives its second operand when either is NaN or both are zero. LLVM gets it by
 * name: of a comparison and a choice inside another choice it makes two comparisons. */
#define MINMAX(pick, op)                                                                           \
	{pick,                                                                                     \
	 SET_F32,                                                                                  \
	 SET_F32,                                                                                  \
	 NV | ROW_LESSER | ROW_512,                                                                \
	 "($T)$P_" op "_$E($a, $b)",                                                               \
	 "llvm.x86.avx512." op ".ps.512(a, b, i32:4)"},                                            \
		{pick,                                                                             \
		 SET_F64,                                                                          \
		 SET_F64,                                                                          \
		 NV | ROW_LESSER | ROW_512,                                                        \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 "llvm.x86.avx512." op ".pd.512(a, b, i32:4)"},                                    \
		{pick,                                                                             \
		 SET_F32,                                                                          \
		 SET_F32,                                                                          \
		 NV | ROW_LESSER | ROW_256,                                                        \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 "llvm.x86.avx." op ".ps.256(a, b)"},                                              \
		{pick,                                                                             \
		 SET_F64,                                                                          \
		 SET_F64,                                                                          \
		 NV | ROW_LESSER | ROW_256,                                                        \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 "llvm.x86.avx." op ".pd.256(a, b)"},                                              \
		{pick,                                                                             \
		 SET_F32,                                                                          \
		 SET_F32,                                                                          \
		 NV | ROW_LESSER | ROW_128,                                                        \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 "llvm.x86.sse." op ".ps(a, b)"},                                                  \
		{pick,                                                                             \
		 SET_F64,                                                                          \
		 SET_F64,                                                                          \
		 NV | ROW_LESSER | ROW_128,                                                        \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 "llvm.x86.sse2." op ".pd(a, b)"},                                                 \
		{op,                                                                               \
		 D1(DT_i32) | D1(DT_u32) | D1(DT_i8) | D1(DT_u8) | D1(DT_i16) | D1(DT_u16),        \
		 SET_INT,                                                                          \
		 NV,                                                                               \
		 "($T)$P_" op "_$E($a, $b)",                                                       \
		 NULL},                                                                            \
	{                                                                                          \
		op, D1(DT_i64) | D1(DT_u64), SET_INT, NV | ROW_BITS, "($T)$P_" op "_$E($a, $b)",   \
			NULL                                                                       \
	}

/* The table, and eight zeros, once in each 16 bytes. */
#define LOOKUP8(when, p, zero, llvm)                                                               \
	{"lookup8", D1(DT_u32), D1(DT_u32), NV | (when),                                           \
	 "($T)" p "_shuffle_epi8(" p "_unpacklo_epi64(" p "_unpacklo_epi32($b, $c), " zero         \
	 "), $a)",                                                                                 \
	 "bitcast(" llvm "(bytes(table(b, c)), bytes(a)))"}

#define DOT(op, acc, when, c, llvm) {op, D1(acc), D1(DT_u32), NV | (when), c, llvm}

const PreludeRow prelude_x86[] = {
	{"fma", SET_FLOAT, SET_FLOAT, NV | ROW_FMA, "($T)$P_fmadd_$E($a, $b, $c)", "llvm.fma(a, b, c)"},
	{"scale", SET_F32, SET_F32, NV | ROW_BITS | ROW_512, "($T)_mm512_scalef_ps($a, (__m512)(b "
							     "- 0x1.8p23f))",
	 "llvm.x86.avx512.mask.scalef.ps.512(a, fsub(b, 0x1.8p23), a, i16:-1, i32:4)"},
	{"scale", SET_F64, SET_F64, NV | ROW_BITS | ROW_512, "($T)_mm512_scalef_pd($a, (__m512d)(b "
							     "- 0x1.8p52))",
	 "llvm.x86.avx512.mask.scalef.pd.512(a, fsub(b, 0x1.8p52), a, i8:-1, i32:4)"},
	DOT("dot2_bf16", DT_f32, ROW_BF16 | ROW_512, "($T)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, "
						     "(__m512bh)b)",
	    "llvm.x86.avx512bf16.dpbf16ps.512(c, a, b)"),
	DOT("dot4_u8s8", DT_i32, ROW_VNNI | ROW_512, "($T)_mm512_dpbusd_epi32((__m512i)c, $a, $b)", "llvm.x86.avx512.vpdpbusd.512(c, a, b)"),
	DOT("dot4_u8s8", DT_i32, ROW_VNNI | ROW_256 | ROW_LANES, "($T)_mm256_dpbusd_avx_epi32((__m256i)c, $a, $b)",
	    "llvm.x86.avx512.vpdpbusd.256(c, a, b)"),
	DOT("pairs_u8s8", DT_i32, ROW_512,
	    "($T)_mm512_add_epi16((__m512i)c, _mm512_maddubs_epi16($a, $b))",
	    "bitcast(add(words(c), words(llvm.x86.avx512.pmaddubs.w.512(a, b))))"),
	DOT("pairs_u8s8", DT_i32, ROW_256,
	    "($T)_mm256_add_epi16((__m256i)c, _mm256_maddubs_epi16($a, $b))",
	    "bitcast(add(words(c), words(llvm.x86.avx2.pmadd.ub.sw(a, b))))"),
	DOT("pairs_u8s8", DT_i32, ROW_128,
	    "($T)_mm_add_epi16((__m128i)c, _mm_maddubs_epi16($a, $b))",
	    "bitcast(add(words(c), words(llvm.x86.ssse3.pmadd.ub.sw.128(a, b))))"),
	DOT("pairs_s8s8", DT_i32, ROW_256 | ROW_LANES,
	    "($T)_mm256_add_epi16((__m256i)c, _mm256_maddubs_epi16(_mm256_abs_epi8($b), "
	    "_mm256_sign_epi8($a, $b)))",
	    "bitcast(add(words(c), words(llvm.x86.avx2.pmadd.ub.sw(llvm.abs(bytes(b), false), "
	    "llvm.x86.avx2.psign.b(a, b)))))"),
	DOT("pairs_s8s8", DT_i32, ROW_128 | ROW_LANES,
	    "($T)_mm_add_epi16((__m128i)c, _mm_maddubs_epi16(_mm_abs_epi8($b), "
	    "_mm_sign_epi8($a, $b)))",
	    "bitcast(add(words(c), words(llvm.x86.ssse3.pmadd.ub.sw.128(llvm.abs(bytes(b), "
	    "false), llvm.x86.ssse3.psign.b.128(a, b)))))"),
	DOT("dot2_s16", DT_i32, ROW_VNNI | ROW_512, "($T)_mm512_dpwssd_epi32((__m512i)c, $a, $b)", "llvm.x86.avx512.vpdpwssd.512(c, a, b)"),
	DOT("dot2_s16", DT_i32, ROW_512, "($T)_mm512_add_epi32((__m512i)c, _mm512_madd_epi16($a, "
					 "$b))",
	    "add(c, llvm.x86.avx512.pmaddw.d.512(a, b))"),
	DOT("dot2_s16", DT_i32, ROW_256, "($T)_mm256_add_epi32((__m256i)c, _mm256_madd_epi16($a, "
					 "$b))",
	    "add(c, llvm.x86.avx2.pmadd.wd(a, b))"),
	DOT("dot2_s16", DT_i32, ROW_128, "($T)_mm_add_epi32((__m128i)c, _mm_madd_epi16($a, $b))", "add(c, llvm.x86.sse2.pmadd.wd(a, b))"),
	LOOKUP8(ROW_512, "_mm512", "_mm512_setzero_si512()", "llvm.x86.avx512.pshuf.b.512"),
	LOOKUP8(ROW_256, "_mm256", "_mm256_setzero_si256()", "llvm.x86.avx2.pshuf.b"),
	LOOKUP8(ROW_128, "_mm", "_mm_setzero_si128()", "llvm.x86.ssse3.pshuf.b.128"),
	{"sqrt", SET_FLOAT, SET_FLOAT, NV, "($T)$P_sqrt_$E($a)", NULL},
	ROUND("floor", "0x9"),
	ROUND("ceil", "0xa"),
	ROUND("trunc", "0xb"),
	ROUND("rint", "0x8"),
	MINMAX("lesser", "min"),
	MINMAX("greater", "max"),
	COMPARE("eq", "EQ_OQ", "EQ"),
	COMPARE("ne", "NEQ_UQ", "NE"),
	COMPARE("lt", "LT_OQ", "LT"),
	COMPARE("le", "LE_OQ", "LE"),
	COMPARE("gt", "GT_OQ", "NLE"),
	COMPARE("ge", "GE_OQ", "NLT"),
	{"select", SET_NUMBER, SET_NUMBER, NV | ROW_BITS, "($T)$P_mask_mov_$e($b, m, $a)", NULL},
	{"select", SET_4, SET_4, NV | ROW_LANES,
	 "($T)$P_blendv_ps($f(b), $f(a), $f(m))", NULL},
	{"any", SET_BOOL, SET_BOOL, ROW_VECTOR | ROW_LANES | N, "$P_movemask_epi8($v(m)) != 0", NULL},

	/* memory */
	{"load_masked", SET_NUMBER, SET_NUMBER, NV | ROW_BITS, "($T)$P_maskz_loadu_$e(m, p)", NULL},
	{"store_masked", SET_NUMBER, SET_NUMBER, NV | ROW_BITS, "{$P_mask_storeu_$e(p, m, "
								"$v(v));}", NULL},
	{"stream", SET_NUMBER, SET_NUMBER, NV,
	 "{if ((uintptr_t)p % sizeof v)\n\t\tmemcpy(p, &v, sizeof "
	 "v);\n\telse\n\t\t$P_stream_ps((float *)p, $f(v));}", NULL},
	{"fence", SET_F32, SET_F32, ROW_SCALAR, "__builtin_ia32_sfence()", "llvm.x86.sse.sfence"},
	{"load_masked", SET_4, SET_4, NV | ROW_LANES | ROW_AVX,
	 "($T)$P_maskload_ps((const float *)p, $q(m))", NULL},
	{"store_masked", SET_4, SET_4, NV | ROW_LANES | ROW_AVX,
	 "{$P_maskstore_ps((float *)p, $q(m), $f(v));}", NULL},

	/* fragments */
	{"tile_bf16", SET_F32, SET_F32, ROW_SCALAR | ROW_TILE_BF16, "_tile_dpbf16ps", "llvm.x86.tdpbf16ps"},
	{"tile_s8s8", SET_F32, SET_F32, ROW_SCALAR | ROW_TILE_INT8, "_tile_dpbssd", "llvm.x86.tdpbssd"},
	{"tile_u8s8", SET_F32, SET_F32, ROW_SCALAR | ROW_TILE_INT8, "_tile_dpbusd", "llvm.x86.tdpbusd"},
	{"tile_s8u8", SET_F32, SET_F32, ROW_SCALAR | ROW_TILE_INT8, "_tile_dpbsud",
	 "llvm.x86.tdpbsud"},

	/* conversions */
	{"from_f16", SET_F32, SET_F32, NV | ROW_F16 | ROW_512, "($T)_mm512_cvtph_ps((__m256i)a)", "fpext(half(a))"},
	{"from_f16", SET_F32, SET_F32, NV | ROW_F16 | ROW_NARROW,
	 "{__m128i h = _mm_setzero_si128();\n\tmemcpy(&h, &a, sizeof a);\n\treturn "
	 "($T)$P_cvtph_ps(h);}", "fpext(half(a))"},
	{"to_f16", SET_F32, SET_F32, NV | ROW_F16 | ROW_512, "($[u16])_mm512_cvtps_ph((__m512)a, "
							     "8)", "bitcast(to.half(a))"},
	{"to_f16", SET_F32, SET_F32, NV | ROW_F16 | ROW_NARROW,
	 "{const __m128i h = $P_cvtps_ph($a, 8);\n\t$[u16] r;\n\tmemcpy(&r, &h, sizeof "
	 "r);\n\treturn r;}", "bitcast(to.half(a))"},
	{"flush_bf16", SET_F32, SET_F32, NV | ROW_BF16 | ROW_512,
	 "($[u16])_mm512_cvtneps_pbh((__m512)a)",
	 "bitcast(llvm.x86.avx512bf16.cvtneps2bf16.512(a))"},
	/* the instructions give the smallest value where a is NaN or does not fit, as we do */
	{"convert", D1(DT_i32), SET_F32, ROW_SCALAR | ROW_CONVERT, "_mm_cvttss_si32(_mm_set_ss(a))", NULL},
	{"convert", D1(DT_i32), SET_F64, ROW_SCALAR | ROW_CONVERT, "_mm_cvttsd_si32(_mm_set_sd(a))", NULL},
	{"convert", D1(DT_i64), SET_F32, ROW_SCALAR | ROW_CONVERT, "_mm_cvttss_si64(_mm_set_ss(a))", NULL},
	{"convert", D1(DT_i64), SET_F64, ROW_SCALAR | ROW_CONVERT, "_mm_cvttsd_si64(_mm_set_sd(a))", NULL},
	{"convert", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_512, "($T)$P_cvttps_epi32($a)",
	 "llvm.x86.avx512.mask.cvttps2dq.512(a, bitcast(a), i16:-1, i32:4)"},
	{"convert", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_256, "($T)$P_cvttps_epi32($a)", "llvm.x86.avx.cvtt.ps2dq.256(a)"},
	{"convert", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_128, "($T)$P_cvttps_epi32($a)", "llvm.x86.sse2.cvttps2dq(a)"},
	{"nearest", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_512, "($T)$P_cvtps_epi32($a)",
	 "llvm.x86.avx512.mask.cvtps2dq.512(a, bitcast(a), i16:-1, i32:4)"},
	{"nearest", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_256, "($T)$P_cvtps_epi32($a)", "llvm.x86.avx.cvt.ps2dq.256(a)"},
	{"nearest", D1(DT_i32), SET_F32, NV | ROW_CONVERT | ROW_128, "($T)$P_cvtps_epi32($a)", "llvm.x86.sse2.cvtps2dq(a)"},
	/* gcc 12 takes such vectors apart */
	{"convert", D1(DT_i32), D1(DT_u8), ROW_VECTOR | ROW_TONATIVE | ROW_128, "($T)_mm512_cvtepu8_epi32((__m128i)a)", NULL},
	{"convert", D1(DT_i32), D1(DT_i8), ROW_VECTOR | ROW_TONATIVE | ROW_128, "($T)_mm512_cvtepi8_epi32((__m128i)a)", NULL},
	{"convert", D1(DT_u8) | D1(DT_i8), D1(DT_i32), NV | ROW_512, "($T)_mm512_cvtepi32_epi8((__m512i)a)", NULL},
	{"convert", D1(DT_i32), SET_F64, NV | ROW_512 | ROW_CONVERT, "($T)_mm512_cvttpd_epi32($a)", NULL},
	{"convert", D1(DT_i32), SET_F64, NV | ROW_NARROW | ROW_CONVERT,
	 "{const __m128i i = $P_cvttpd_epi32($a);\n\t$T r;\n\tmemcpy(&r, &i, sizeof r);\n\treturn "
	 "r;}", NULL},
	{"convert", D1(DT_i64), SET_F64, NV | ROW_BITS | ROW_CONVERT, "($T)$P_cvttpd_epi64($a)", NULL},
	{"convert", D1(DT_i64), SET_F32, ROW_VECTOR | ROW_BITS | ROW_CONVERT,
	 "$fn[convert:T:f64:L](__builtin_convertvector(a, $[f64]))", NULL},
	{0},
};
