"""Models of one node of com.microsoft and ai.onnx.ml, with inputs and with the results of ONNX Runtime: make_contrib.py FOLDER [CASE...]
writes FOLDER/CASE/model.onnx and FOLDER/CASE/test_data_set_0, as ONNX's node tests have them, and FOLDER/refused/NAME.onnx with what weft
must say of the model, NAME.txt; --list prints the names of the cases. tests/data/contrib.tar.xz is made of all of them:
tar -C FOLDER -cJf tests/data/contrib.tar.xz --sort=name --mtime=@0 --owner=0 --group=0 ."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MS, ML = "com.microsoft", "ai.onnx.ml"
CASES = {}


def case(op, inputs, outputs=1, domain=MS, const=(), version=None, **attrs):
    """inputs: arrays, None for an absent one; const: numbers of those that are initialisers."""
    number = sum(name.rpartition("_")[0] == op.lower() for name in CASES)
    CASES[f"{op.lower()}_{number}"] = (op, inputs, outputs, domain, const, version, attrs)


def rng(seed):
    return np.random.RandomState(seed)


R = rng(7)


def f(*shape, scale=1.0):
    return (R.randn(*shape) * scale).astype(np.float32)


def u8(*shape, low=0, high=256):
    return R.randint(low, high, shape).astype(np.uint8)


def i8(*shape, low=-128, high=128):
    return R.randint(low, high, shape).astype(np.int8)


def i32(*v):
    return np.array(v, np.int32)


def i64(*v):
    return np.array(v, np.int64)


def one(v, dtype=np.float32):
    return np.array(v, dtype)


# ---- activations, norms ----

def activations():
    for shape in (3, 8), (2, 5, 16):
        case("Gelu", [f(*shape)])
        case("QuickGelu", [f(*shape)], **({"alpha": 1.5} if len(shape) == 3 else {}))
        case("BiasGelu", [f(*shape), f(shape[-1])])
        case("FastGelu", [f(*shape), f(shape[-1])] if len(shape) == 2 else [f(*shape)])


def norms():
    case("LayerNormalization", [f(2, 3, 16), f(16), f(16)], domain="", axis=-1, epsilon=1e-5)
    case("SimplifiedLayerNormalization", [f(2, 3, 16), f(16)], domain="", axis=-1, epsilon=1e-5, stash_type=1)
    case("SimplifiedLayerNormalization", [f(7, 8), f(8)], 2, domain="", axis=-1, epsilon=1e-3, stash_type=1)
    skip = [f(2, 3, 16), f(2, 3, 16), f(16), f(16), f(16)]
    case("SkipLayerNormalization", skip, epsilon=1e-5)
    case("SkipLayerNormalization", skip[:4])
    case("SkipLayerNormalization", [*skip[:3], None, f(16)], epsilon=1e-5)
    case("SkipLayerNormalization", [f(2, 3, 16), f(3, 16), f(16), f(16)], [1, 0, 0, 1], epsilon=1e-5)
    case("SkipLayerNormalization", [f(2, 3, 16), f(1, 3, 16), f(16)], [1, 0, 0, 1], epsilon=1e-5)
    case("SkipSimplifiedLayerNormalization", skip[:3], epsilon=1e-5)
    case("SkipSimplifiedLayerNormalization", [*skip[:3], f(16)], [1, 0, 0, 1], epsilon=1e-6)
    case("SkipSimplifiedLayerNormalization", [f(6, 16), f(6, 16), f(16)], [1, 0, 0, 1], epsilon=1e-6)
    ids, seg = R.randint(0, 20, (2, 6)).astype(np.int32), R.randint(0, 2, (2, 6)).astype(np.int32)
    mask = i32(1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1).reshape(2, 6)
    tables = [f(20, 8), f(10, 8), f(2, 8), f(8), f(8)]
    case("EmbedLayerNormalization", [ids, seg, *tables, mask], 2, epsilon=1e-5)
    case("EmbedLayerNormalization", [ids, seg, *tables, None], 3, epsilon=1e-5)
    case("EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:], mask], 2, epsilon=1e-5)
    at = R.randint(0, 10, (2, 6)).astype(np.int32)
    case("EmbedLayerNormalization", [ids, seg, *tables, None, at], [1, 1, 1], epsilon=1e-5)


# ---- products ----

def products():
    case("FusedMatMul", [f(3, 4), f(4, 5)], alpha=0.5)
    case("FusedMatMul", [f(4, 3), f(5, 4)], transA=1, transB=1)
    case("FusedMatMul", [f(2, 3, 4), f(2, 5, 4)], transB=1, alpha=2.0)
    case("FusedMatMul", [f(4, 2, 3), f(2, 3, 5)], transBatchA=1)
    case("FusedMatMul", [f(2, 4, 3), f(5, 2, 3)], transBatchB=1, transB=1)
    case("TransposeMatMul", [f(2, 4, 3), f(2, 4, 5)], transA=1)
    case("FusedGemm", [f(3, 4), f(4, 5), f(5)], activation="Relu")
    case("FusedGemm", [f(4, 3), f(5, 4), f(3, 1)], transA=1, transB=1, alpha=0.5, beta=2.0, activation="LeakyRelu", activation_alpha=0.2)
    case("FusedGemm", [f(3, 4), f(4, 5)], activation="Tanh")
    case("FusedGemm", [f(3, 4), f(4, 5), f(3, 5)], activation="HardSigmoid", activation_alpha=0.2, activation_beta=0.5)
    x, w = f(2, 3, 8, 8), f(4, 3, 3, 3)
    case("FusedConv", [x, w, f(4)], activation="Relu", pads=[1, 1, 1, 1])
    case("FusedConv", [x, w], activation="Clip", activation_params=[-1.0, 2.0], strides=[2, 2])
    case("FusedConv", [x, w, f(4), f(2, 4, 8, 8)], activation="Relu", pads=[1, 1, 1, 1])
    case("FusedConv", [f(1, 4, 6, 6), f(4, 2, 3, 3), f(4)], activation="LeakyRelu", activation_params=[0.1], group=2, auto_pad="SAME_UPPER")
    case("FusedConv", [x, w], activation="HardSigmoid", activation_params=[0.3, 0.4], dilations=[2, 2])
    case("CDist", [f(5, 4), f(6, 4)])
    case("CDist", [f(5, 4), f(6, 4)], metric="euclidean")
    case("Inverse", [f(4, 4) + 4 * np.eye(4, dtype=np.float32)])
    case("Inverse", [f(2, 3, 3) + 4 * np.eye(3, dtype=np.float32)])
    case("MatMulInteger16", [R.randint(-999, 999, (3, 4)).astype(np.int16), R.randint(-999, 999, (4, 5)).astype(np.int16)])


def bits():
    def blocks(n, k, block, bits, zero):
        count = -(-k // block)
        packed = None if not zero else u8(n, -(-count * bits // 8))
        return [u8(n, count, block * bits // 8), f(n, count, scale=0.02).__abs__() + np.float32(0.01), packed]
    for bits, k, block in (4, 64, 32), (4, 50, 16), (8, 64, 32), (2, 64, 32), (4, 128, 128), (8, 33, 16):
        for zero in False, True:
            x = f(3, k) if zero else f(2, 3, k)
            w, scale, z = blocks(8, k, block, bits, zero)
            case("MatMulNBits", [x, w, scale, *([z] if zero else [])], const=(1, 2, 3), K=k, N=8, bits=bits, block_size=block)
    w, scale, _ = blocks(8, 64, 32, 4, False)
    case("MatMulNBits", [f(3, 64), w, scale, f(8, 2) + 8], const=(1, 2, 3), K=64, N=8, bits=4, block_size=32)
    case("MatMulNBits", [f(3, 64), w, scale, None, None, f(8)], const=(1, 2, 5), K=64, N=8, bits=4, block_size=32)
    keep = R.get_state()
    for block in 32, 128:  # operands may be rounded to 8 bits
        w, scale, z = blocks(8, 256, block, 4, True)
        case("MatMulNBits", [f(3, 256), w, scale, z], const=(1, 2, 3), K=256, N=8, bits=4, block_size=block, accuracy_level=4)
    R.set_state(keep)
    for kind in 0, 1:
        case("MatMulBnb4", [f(3, 64), u8(8 * 32), f(8 * 64 // 32).__abs__()], const=(1, 2), K=64, N=8, block_size=32, quant_type=kind)
    for bits in 4, 8:
        data = u8(10, 32 * bits // 8)
        case("GatherBlockQuantized", [data, R.randint(0, 10, (2, 3)).astype(np.int64), f(10, 2)], const=(0, 2), bits=bits, block_size=16)
    case("GatherBlockQuantized", [u8(10, 16), R.randint(-10, 10, (4,)).astype(np.int64), f(10, 2), u8(10, 1)], const=(0, 2, 3), bits=4, block_size=16)


# ---- quantised ----

def quantised():
    for make, zero in (u8, 128), (i8, 3):
        z = make(1)[0].dtype.type
        a, sa, za, sb, zb, sc, zc = make(3, 5), one(0.037), one(zero, z), one(0.021), one(zero - 1, z), one(0.0531), one(zero + 2, z)
        for op in "QLinearAdd", "QLinearMul":
            case(op, [a, sa, za, make(3, 5), sb, zb, sc, zc])
            case(op, [make(2, 3, 5), sa, za, make(5), sb, zb, sc, zc], const=(3, 4, 5))
        case("QLinearLeakyRelu", [a, sa, za, one(0.0313), zc], const=(1, 2, 3, 4), alpha=0.1)
        case("QLinearSigmoid", [a, sa, za, one(0.0041), one(zero - 100, z)], const=(1, 2, 3, 4))
        case("QLinearSoftmax", [make(3, 8), one(0.0513), za, one(1 / 256), one(0 if zero == 128 else -128, z)], const=(1, 2, 3, 4), axis=-1, opset=13)
        case("QLinearSoftmax", [make(2, 3, 4), one(0.0513), za, one(1 / 256), one(0 if zero == 128 else -128, z)], const=(1, 2, 3, 4), axis=1, opset=12)
        case("QLinearWhere", [R.rand(3, 5) > 0.5, a, sa, za, make(3, 5), sb, zb, sc, zc], const=(2, 3, 5, 6, 7, 8))
        case("QLinearGlobalAveragePool", [make(2, 3, 5, 5), one(0.05), za, one(0.0061), zc])
        case("QLinearConcat", [sc, zc, a, sa, za, make(3, 2), sb, zb], const=(0, 1, 3, 4, 6, 7), axis=1)
        case("QuantizeLinear", [f(3, 5), one(0.0173), za])
        case("QuantizeLinear", [f(3, 5), np.abs(f(5)) / 50 + np.float32(0.01), make(5)], axis=1)
        case("DequantizeLinear", [a, sa, za])
        case("DequantizeLinear", [a, np.abs(f(3)), make(3)], axis=0)
    case("QLinearAveragePool", [u8(2, 3, 6, 6), one(0.05), one(100, np.uint8), one(0.0311), one(90, np.uint8)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    case("QLinearAveragePool", [u8(2, 6, 6, 3), one(0.05), one(100, np.uint8), one(0.0311), one(90, np.uint8)], kernel_shape=[2, 2], strides=[2, 2],
         channels_last=1)
    case("QLinearAveragePool", [i8(1, 2, 7, 7), one(0.05), one(0, np.int8), one(0.0312), one(5, np.int8)], kernel_shape=[3, 3], ceil_mode=1, strides=[2, 2])
    case("QLinearGlobalAveragePool", [u8(2, 5, 5, 3), one(0.05), one(100, np.uint8), one(0.0061), one(90, np.uint8)], channels_last=1)
    case("NhwcMaxPool", [u8(2, 6, 6, 3)], kernel_shape=[2, 2], strides=[2, 2])
    case("NhwcMaxPool", [i8(1, 7, 7, 2)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x, w = u8(4, 8), u8(8, 6)
    case("MatMulIntegerToFloat", [x, w, one(0.02), one(0.03), one(120, np.uint8), one(130, np.uint8), f(6)])
    case("MatMulIntegerToFloat", [x, i8(8, 6), one(0.02), np.abs(f(6)), one(120, np.uint8), i8(6)])
    case("MatMulIntegerToFloat", [u8(2, 4, 8), w, one(0.02), one(0.03)])
    case("DynamicQuantizeMatMul", [f(4, 8), w, one(0.03), one(130, np.uint8), f(6)], const=(1, 2, 3, 4))
    case("DynamicQuantizeMatMul", [f(4, 8), i8(8, 6), np.abs(f(6)), i8(6)], const=(1, 2, 3))
    case("QGemm", [x, one(0.02), one(120, np.uint8), w, one(0.03), one(130, np.uint8), R.randint(-99, 99, 6).astype(np.int32), one(0.0717), one(128, np.uint8)],
         const=(3, 4, 5, 6))
    case("QGemm", [x, one(0.02), one(120, np.uint8), u8(6, 8), one(0.03), one(130, np.uint8)], const=(3, 4, 5), transB=1, alpha=0.5)
    case("QGemm", [i8(4, 8), one(0.02), one(3, np.int8), i8(8, 6), np.abs(f(6)) / 9, i8(6) // 9, None, one(0.0717), one(1, np.int8)], const=(3, 4, 5))
    for last in 0, 1:
        image = u8(1, 6, 6, 2) if last else u8(1, 2, 6, 6)
        case("QLinearConv", [image, one(0.02), one(120, np.uint8), i8(4, 2, 3, 3), np.abs(f(4)) / 9, np.zeros(4, np.int8), one(0.1713), one(99, np.uint8),
                             R.randint(-99, 99, 4).astype(np.int32)], const=(1, 2, 3, 4, 5, 6, 7, 8), pads=[1, 1, 1, 1], channels_last=last)


# ---- attention ----

def attention():
    x, w, bias = f(2, 4, 16), f(16, 48, scale=0.3), f(48)
    raw = i32(1, 1, 1, 0, 1, 1, 1, 1).reshape(2, 4)
    case("Attention", [x, w, bias], num_heads=2)
    case("Attention", [x, w, bias, raw], num_heads=4)
    case("Attention", [x, w, bias, i32(3, 4)], num_heads=2)
    case("Attention", [x, w, bias, i32(4, 3, 1, 0)], num_heads=2)
    case("Attention", [x, w, bias], num_heads=2, unidirectional=1)
    case("Attention", [x, w, bias, R.randint(0, 2, (2, 4, 4)).astype(np.int32) | np.eye(4, dtype=np.int32)], num_heads=2)
    case("Attention", [x, w, bias, None, f(2, 2, 2, 3, 8)], 2, num_heads=2, unidirectional=1)
    case("Attention", [x, w, bias, None, None, f(1, 2, 4, 4)], num_heads=2, scale=0.5)
    case("Attention", [x, f(16, 40, scale=0.3), f(40)], num_heads=2, qkv_hidden_sizes=[16, 16, 8])
    q, k, v = f(2, 4, 16), f(2, 5, 16), f(2, 5, 16)
    mha = "MultiHeadAttention"
    case(mha, [q, k, v], num_heads=2)
    case(mha, [q, k, v, f(48)], num_heads=4, scale=0.3)
    case(mha, [q, k, v, None, i32(1, 1, 1, 1, 0, 1, 1, 0, 0, 0).reshape(2, 5)], num_heads=2)
    case(mha, [q, k, v, None, None, f(2, 2, 4, 5)], num_heads=2)
    case(mha, [q, f(2, 4, 16), f(2, 4, 16), None, None, None, f(2, 2, 3, 8), f(2, 2, 3, 8)], 3, num_heads=2)
    case(mha, [q, f(2, 2, 5, 8), f(2, 2, 5, 8)], num_heads=2)
    case(mha, [q, f(2, 4, 16), f(2, 4, 16)], num_heads=2, unidirectional=1)
    case(mha, [q, k, v, None, i32(3, 5)], num_heads=2)
    case(mha, [q, k, f(2, 5, 8)], num_heads=2)
    dmha = "DecoderMaskedMultiHeadAttention"
    q1 = f(2, 1, 16)
    case(dmha, [q1, f(2, 2, 5, 8), f(2, 2, 5, 8)], num_heads=2)
    case(dmha, [q1, f(2, 2, 5, 8), f(2, 2, 5, 8), i32(1, 1, 1, 0, 0, 1, 1, 1, 1, 1).reshape(2, 5)], num_heads=2)
    qa = "QAttention"
    case(qa, [u8(2, 4, 16), u8(16, 48), bias, one(0.02), one(0.01), None, one(120, np.uint8), one(130, np.uint8)], const=(1, 2, 3, 4), num_heads=2)
    case(qa, [u8(2, 4, 16), i8(16, 48), bias, one(0.02), one(0.01), i32(3, 4), one(120, np.uint8), one(3, np.int8)], const=(1, 2, 3, 4), num_heads=2)


def grouped():
    gqa = "GroupQueryAttention"
    cos, sin = f(16, 8), f(16, 8)

    def call(queries, past, **attrs):
        n = attrs.pop("batch", 2)
        kv = [f(n, 2, past, 16), f(n, 2, past, 16)] if past else [None, None]
        total = past + queries
        more = attrs.pop("more", [])
        return case(gqa, [f(n, queries, 64), f(n, queries, 32), f(n, queries, 32), *kv, i32(*[total - 1] * n), np.array(total, np.int32), *more], 3,
                    const=(6,), num_heads=4, kv_num_heads=2, **attrs)
    call(5, 0)
    call(1, 6)
    call(3, 4, batch=1)
    call(5, 0, more=[cos, sin], do_rotary=1)
    call(1, 6, more=[cos, sin], do_rotary=1)
    call(1, 6, more=[cos, sin], do_rotary=1, rotary_interleaved=1)
    call(5, 0, local_window_size=2)
    call(5, 0, softcap=3.0, scale=0.7)
    call(5, 0, smooth_softmax=1)
    call(5, 0, more=[None, None, None, None, f(4)])
    call(5, 0, more=[None, None, None, f(1, 1, 5, 5)])
    case(gqa, [f(2, 3, 128), None, None, None, None, i32(2, 2), np.array(3, np.int32), cos, sin], 3, const=(6,), num_heads=4, kv_num_heads=2, do_rotary=1)
    case(gqa, [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 6, 16), f(2, 2, 6, 16), i32(3, 6), np.array(7, np.int32), cos, sin], 3, const=(6,), num_heads=4,
         kv_num_heads=2, do_rotary=1)
    rotary = "RotaryEmbedding"
    at = R.randint(0, 16, (2, 3)).astype(np.int64)
    case(rotary, [f(2, 3, 32), at, cos, sin])
    case(rotary, [f(2, 3, 32), i64(2), cos, sin])
    case(rotary, [f(2, 4, 3, 16), at, cos, sin], interleaved=1)
    case(rotary, [f(2, 3, 32), at, f(16, 2), f(16, 2)], num_heads=4, rotary_embedding_dim=4)


def moe():
    for act, k, norm in ("relu", 1, 0), ("silu", 2, 1), ("gelu", 2, 0), ("identity", 1, 1):
        case("MoE", [f(6, 8), f(6, 4), f(4, 16, 8, scale=0.3), f(4, 16) if norm else None, f(4, 8, 16, scale=0.3), f(4, 8) if norm else None], const=(2, 3, 4, 5),
             activation_type=act, k=k, normalize_routing_weights=norm)
    case("MoE", [f(6, 8), f(6, 4), f(4, 32, 8, scale=0.3), f(4, 32), f(4, 8, 16, scale=0.3), f(4, 8)], const=(2, 3, 4, 5), activation_type="swiglu", k=2,
         normalize_routing_weights=1, swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)


    for bits, block in (4, None), (8, None), (4, 16):
        def scales(n, k):
            return np.abs(f(4, n, *([k // block] if block else []), scale=0.02)) + np.float32(0.005)
        case("QMoE", [f(6, 32), f(6, 4), u8(4, 16, 32 * bits // 8), scales(16, 32), f(4, 16), u8(4, 32, 16 * bits // 8), scales(32, 16), f(4, 32)],
             const=(2, 3, 4, 5, 6, 7), activation_type="silu", k=2, normalize_routing_weights=1, expert_weight_bits=bits, **({"block_size": block} if block else {}))


def shapes():
    case("GatherND", [f(3, 4, 5), np.array([[0, 1], [2, 3]], np.int64)])
    case("Trilu", [f(2, 4, 5), np.array(1, np.int64)], const=(1,))
    case("Trilu", [f(4, 4)], upper=0)
    case("ExpandDims", [f(3, 4), np.array(1, np.int32)], const=(1,))
    case("Pad", [f(3, 4), i64(1, 0, 0, 2), np.array([1.5], np.float32)], const=(1,))
    case("Pad", [f(3, 4), i64(1, 2, 1, 2)], const=(1,), mode="reflect")
    case("GridSample", [f(1, 2, 5, 5), (R.rand(1, 3, 4, 2) * 2.2 - 1.1).astype(np.float32)])
    case("GridSample", [f(1, 2, 5, 5), (R.rand(1, 3, 4, 2) * 2.2 - 1.1).astype(np.float32)], padding_mode="border", mode="nearest", align_corners=1)


# ---- ai.onnx.ml ----

def features():
    def ml(op, inputs, outputs=1, **attrs):
        case(op, inputs, outputs, ML, **attrs)
    x = f(4, 3)
    ml("Scaler", [x], offset=[0.5, -0.5, 1.0], scale=[2.0, 3.0, 0.5])
    ml("Scaler", [x], offset=[0.5], scale=[2.0])
    ml("Scaler", [i64(1, 2, 3, 4, 5, 6).reshape(2, 3)], offset=[0.5, -0.5, 1.0], scale=[2.0, 3.0, 0.5])
    for norm in "MAX", "L1", "L2":
        ml("Normalizer", [np.concatenate([x, np.zeros((1, 3), np.float32)])], norm=norm)
    holes = np.where(f(4, 3) > 0.5, np.float32("nan"), x)
    ml("Imputer", [holes], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    ml("Imputer", [np.where(holes != holes, np.float32(-1), x)], imputed_value_floats=[9.0], replaced_value_float=-1.0)
    ml("Imputer", [i64(1, 2, 3, 1, 5, 1).reshape(2, 3)], imputed_value_int64s=[7, 8, 9], replaced_value_int64=1)
    ml("Binarizer", [x], threshold=0.25)
    ml("ArrayFeatureExtractor", [x, i64(0, 2)])
    ml("FeatureVectorizer", [f(3, 2), f(3, 4)], inputdimensions=[2, 4])
    ml("OneHotEncoder", [i64(3, 1, 7, 2)], cats_int64s=[1, 2, 3], zeros=1)
    ml("OneHotEncoder", [i64(3, 1, 7, 2).reshape(2, 2)], cats_int64s=[1, 2, 3], zeros=1)
    ml("LabelEncoder", [i64(3, 1, 7, 2)], keys_int64s=[1, 2, 3], values_floats=[0.5, 1.5, 2.5], default_float=-1.0)
    ml("LabelEncoder", [f(3).round()], keys_floats=[0.0, 1.0, -1.0, float("nan")], values_int64s=[5, 6, 7, 8], default_int64=99)
    ml("LabelEncoder", [i64(3, 1, 7, 2).reshape(2, 2)], keys_int64s=[1, 2, 3], values_int64s=[5, 6, 7])
    w = [float(v) for v in f(9)]
    for transform in "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO":
        ml("LinearClassifier", [x], 2, coefficients=w, intercepts=w[:3], classlabels_ints=[4, 7, 9], multi_class=1, post_transform=transform)
        ml("LinearClassifier", [x], 2, coefficients=w[:6], intercepts=w[:2], classlabels_ints=[0, 1], post_transform=transform)
    ml("LinearRegressor", [x], coefficients=w[:3], intercepts=w[:1])
    ml("LinearRegressor", [x], coefficients=w, intercepts=w[:3], targets=3)
    ml("LinearRegressor", [x], coefficients=w, intercepts=w[:3], targets=3, post_transform="SOFTMAX")
    for kernel in "LINEAR", "POLY", "RBF", "SIGMOID":
        ml("SVMRegressor", [x], coefficients=w[:4], support_vectors=[float(v) for v in f(12)], n_supports=4, rho=[0.5], kernel_type=kernel,
           kernel_params=[0.3, 0.5, 3.0])
    ml("SVMRegressor", [x], coefficients=w[:3], rho=[0.5], kernel_type="LINEAR", kernel_params=[0.3, 0.5, 3.0])


def tree(depth, features, modes, first=0):
    """Columns of a tree whose branches end between depth 1 and `depth`."""
    rows = []

    def grow(level):
        k = len(rows)
        rows.append(None)
        if level == depth or (level and R.rand() < 0.25):
            rows[k] = (R.randint(features), 0.0, "LEAF", 0, 0)
            return k
        yes, no = grow(level + 1), grow(level + 1)
        rows[k] = (R.randint(features), float(np.round(R.randn(), 1)), modes[R.randint(len(modes))], yes, no)
        return k
    grow(0)
    return rows


def ensemble(count, depth, kind, targets, modes=("BRANCH_LEQ",), missing=False, weights_each=1, sign=1, features=4):
    """Attributes of an ensemble: kind is "class" or "target"."""
    a = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    a |= {f"{kind}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    if missing:
        a["nodes_missing_value_tracks_true"] = []
    for t in range(count):
        for k, (feature, at, mode, yes, no) in enumerate(tree(depth, features, modes)):
            for name, v in zip(("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"), (t, k, feature, at, mode, yes, no)):
                a[f"nodes_{name}"].append(v)
            if missing:
                a["nodes_missing_value_tracks_true"].append(int(R.randint(2)))
            for j in range(weights_each if mode == "LEAF" else 0):
                w = R.randn() / 4
                for name, v in ("treeids", t), ("nodeids", k), ("ids", (t + j) % len(targets) if targets else 0), ("weights", abs(w) if sign == 0 else w):
                    a[f"{kind}_{name}"].append(targets[v] if name == "ids" and targets else v)
    return a


def forests():
    def ml(op, inputs, outputs=1, version=3, **attrs):
        case(op, inputs, outputs, ML, (), version, **attrs)
    x = f(17, 4).round(1)
    regressor, classifier = "TreeEnsembleRegressor", "TreeEnsembleClassifier"
    for depth in 1, 3, 5, 9:
        ml(regressor, [x], n_targets=1, **ensemble(7, depth, "target", [0]))
    ml(regressor, [x], n_targets=1, base_values=[0.5], **ensemble(7, 3, "target", [0], ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")))
    ml(regressor, [x.round()], n_targets=1, **ensemble(7, 3, "target", [0], ("BRANCH_EQ", "BRANCH_NEQ", "BRANCH_LEQ")))
    ml(regressor, [np.where(f(17, 4) > 0.8, np.float32("nan"), x)], n_targets=1, **ensemble(7, 4, "target", [0], missing=True))
    for combine in "AVERAGE", "MIN", "MAX":
        ml(regressor, [x], n_targets=1, aggregate_function=combine, base_values=[0.25], **ensemble(5, 3, "target", [0]))
        ml(regressor, [x], n_targets=3, aggregate_function=combine, **ensemble(6, 3, "target", [0, 1, 2]))
    ml(regressor, [x], n_targets=3, base_values=[0.1, 0.2, 0.3], post_transform="SOFTMAX", **ensemble(6, 3, "target", [0, 1, 2]))
    ml(regressor, [x], n_targets=3, **ensemble(6, 8, "target", [0, 1, 2], weights_each=2))
    ml(regressor, [x], n_targets=3, **ensemble(6, 3, "target", [0, 1, 2], weights_each=3))
    ml(regressor, [x.astype(np.float64)], n_targets=1, **ensemble(7, 3, "target", [0]))
    ml(regressor, [f(1, 4)], n_targets=1, post_transform="PROBIT", base_values=[0.2],
       **{k: [abs(w) / 40 for w in v] if k == "target_weights" else v for k, v in ensemble(3, 3, "target", [0]).items()})
    for transform in "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO":
        ml(classifier, [x], 2, classlabels_int64s=[3, 5, 8], post_transform=transform, base_values=[0.1, -0.2, 0.3], **ensemble(9, 3, "class", [0, 1, 2]))
    ml(classifier, [x], 2, classlabels_int64s=[0, 1, 2], **ensemble(4, 5, "class", [0, 1, 2], weights_each=3))
    for transform in "NONE", "LOGISTIC":
        ml(classifier, [x], 2, classlabels_int64s=[0, 1], post_transform=transform, base_values=[0.1], **ensemble(9, 3, "class", [0]))
        ml(classifier, [x], 2, classlabels_int64s=[0, 1], post_transform=transform, **ensemble(5, 3, "class", [1]))
    ml(classifier, [x], 2, classlabels_int64s=[0, 1], **ensemble(4, 3, "class", [0], sign=0))


for make in activations, norms, products, bits, quantised, attention, grouped, moe, shapes, features, forests:
    make()


# ---- what is refused ----

REFUSED = {}


def refused(name, text, op, inputs, outputs=1, domain=MS, **attrs):
    REFUSED[name] = (text, (op, inputs, outputs, domain, range(1, len(inputs)), None, attrs))


def refusals():
    x = f(2, 3)
    leaf = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[0.5, 0.0, 0.0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
                target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], n_targets=1)
    regressor = "TreeEnsembleRegressor"
    refused("zipmap", "ai.onnx.ml.ZipMap of opset 3 (gives a sequence of maps", "ZipMap", [x], domain=ML, classlabels_int64s=[0, 1, 2])
    refused("unknown", "com.microsoft.BeamSearch of opset 1", "BeamSearch", [x])
    refused("cycle", "the nodes of a tree form a cycle", regressor, [x], domain=ML,
            **leaf | {"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], "nodes_truenodeids": [1, 1, 0], "nodes_falsenodeids": [2, 2, 0]})
    refused("branch", "node 0 of tree 0 has a branch to no node", regressor, [x], domain=ML, **leaf | {"nodes_truenodeids": [9, 0, 0]})
    refused("feature", "a node reads feature -1", regressor, [x], domain=ML, **leaf | {"nodes_featureids": [-1, 0, 0]})
    refused("features", "the trees read more features than there are", regressor, [x], domain=ML, **leaf | {"nodes_featureids": [7, 0, 0]})
    refused("mode", "unknown mode BRANCH_UP", regressor, [x], domain=ML, **leaf | {"nodes_modes": ["BRANCH_UP", "LEAF", "LEAF"]})
    refused("length", "nodes_values has 1 elements, expected 3", regressor, [x], domain=ML, **leaf | {"nodes_values": [0.5]})
    refused("target", "a weight is of target 5, of 1", regressor, [x], domain=ML, **leaf | {"target_ids": [5, 0]})
    refused("labels", "the labels are strings", "TreeEnsembleClassifier", [x], 2, domain=ML, classlabels_strings=["a", "b"],
            **{k.replace("target", "class"): v for k, v in leaf.items() if k != "n_targets"})
    refused("bits", "weights of 3 bits, expected 2, 4 or 8", "MatMulNBits", [f(2, 32), u8(8, 1, 12), f(8, 1)], K=32, N=8, bits=3, block_size=32)
    refused("metric", "metric", "CDist", [x, f(4, 3)], metric="canberra")
    refused("state", "a quantised state is not supported", "GroupQueryAttention", [f(1, 2, 16), f(1, 2, 16), f(1, 2, 16), None, None, i32(1), np.array(2, np.int32)],
            num_heads=1, kv_num_heads=1, k_quant_type="PER_TENSOR", kv_cache_bit_width=8)
    refused("targets", "1073741824 targets or classes, expected at most 1048576", regressor, [x], domain=ML, **leaf | {"n_targets": 1 << 30})
    refused("support", "ai.onnx.ml.SVMClassifier of opset 3 (couples probabilities", "SVMClassifier", [x], 2, domain=ML)


refusals()


# ---- writing ----

def model(op, inputs, outputs, domain, const, version, attrs):
    given = outputs if isinstance(outputs, list) else [1] * outputs
    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" if g else "" for k, g in enumerate(given)], domain=domain, **attrs)
    kind = helper.np_dtype_to_tensor_dtype
    there = [(k, x) for k, x in enumerate(inputs) if x is not None]
    graph = helper.make_graph(
        [node], op.lower(), [helper.make_tensor_value_info(names[k], kind(x.dtype), x.shape) for k, x in there if k not in const],
        [helper.make_empty_tensor_value_info(f"y{k}") for k, g in enumerate(given) if g],
        [numpy_helper.from_array(x, names[k]) for k, x in there if k in const])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1), helper.make_opsetid(ML, version or 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), {names[k]: x for k, x in there if k not in const}


def write(folder, name):
    m, feeds = model(*CASES[name])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    out = {o.name: np.asarray(r) for o, r in zip(session.get_outputs(), results)}
    for o in m.graph.output:  # the types that ONNX Runtime found
        o.CopyFrom(helper.make_tensor_value_info(o.name, helper.np_dtype_to_tensor_dtype(out[o.name].dtype), out[o.name].shape))
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(m, folder / name / "model.onnx")
    for kind, tensors in ("input", feeds), ("output", out):
        for k, (label, v) in enumerate(tensors.items()):
            (data / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(v, label).SerializeToString())


def write_refused(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (text, parts) in REFUSED.items():
        m, _ = model(*parts)
        for o in m.graph.output:
            o.CopyFrom(helper.make_tensor_value_info(o.name, TensorProto.FLOAT, None))
        onnx.save(m, folder / f"{name}.onnx")
        (folder / f"{name}.txt").write_text(text + "\n")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    names = args[1:] or list(CASES)
    if "--list" in sys.argv:
        return print(*names)
    failed = 0
    for name in names:
        try:
            write(pathlib.Path(args[0]), name)
        except Exception as e:  # an operator that this ONNX Runtime does not have
            failed += 1
            print(f"{name}: {str(e).splitlines()[0][:300]}", file=sys.stderr)
    write_refused(pathlib.Path(args[0]) / "refused")
    print(f"{len(names) - failed} cases, {len({CASES[n][0] for n in names})} operators")
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
