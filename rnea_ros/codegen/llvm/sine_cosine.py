"""Sines and cosines of a vector of angles at once, as text of an LLVM function; right to 1e-15 up to NEAR.

The angle less the nearest multiple of pi/2, which is taken off in three pieces whose products with up to 17 bits are exact;
then polynomials over [-pi/4, pi/4], through the Chebyshev points in r^2, off by less than 2e-17. Beyond NEAR, and for what is
no number, every lane asks the C library.
"""

from __future__ import annotations

from .types import splat, suffix, type_of

NEAR = 1e5
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)  # 33, 33 and 53 bits
SINE = (-0.16666666666666666, 0.008333333333330948, -0.0001984126983675857, 2.755731610255057e-06, -2.5051131844614108e-08,
        1.5918129266803394e-10)  # sin r = r + r^3 (SINE in r^2)
COSINE = (0.041666666666666664, -0.0013888888888887398, 2.4801587298765686e-05, -2.7557317271728623e-07, 2.087614626815952e-09,
          -1.1382632407965617e-11)  # cos r = 1 - r^2 / 2 + r^4 (COSINE in r^2)
TWO_BY_PI = 0.6366197723675814
ROUND = 1.5 * 2.0**52  # added to a number, leaves its nearest integer in the lowest bits


def function_text(lanes: int) -> str:
    """``{sines, cosines} sincos(angles)`` of vectors."""
    V, W, B, S = type_of(lanes), f"<{lanes} x i64>", f"<{lanes} x i1>", suffix(lanes)

    def fma(name: str, a: str, b: str, c: str) -> str:
        return f"  %{name} = call {V} @llvm.fmuladd.{S}({V} {a}, {V} {b}, {V} {c})"

    def constant(x: float) -> str:
        return splat(x, lanes)

    def whole(x: int) -> str:
        return f"<{', '.join([f'i64 {x}'] * lanes)}>"

    def polynomial(name: str, factors: tuple[float, ...]) -> list[str]:
        names = [constant(factors[-1]), *(f"%{name}{k}" for k in range(len(factors) - 1))]
        return [fma(f"{name}{k}", names[k], "%s", constant(factor)) for k, factor in enumerate(factors[-2::-1])]

    sine, cosine = f"%p{len(SINE) - 2}", f"%c{len(COSINE) - 2}"
    lines = [f"declare {V} @llvm.fabs.{S}({V})", f"declare i1 @llvm.vector.reduce.and.v{lanes}i1({B})",
             f"define internal {{{V}, {V}}} @sincos({V} %x) noinline {{",
             f"  %size = call {V} @llvm.fabs.{S}({V} %x)", f"  %near = fcmp ole {V} %size, {constant(NEAR)}",
             f"  %all = call i1 @llvm.vector.reduce.and.v{lanes}i1({B} %near)", "  br i1 %all, label %quick, label %slow",
             "quick:", fma("shifted", "%x", constant(TWO_BY_PI), constant(ROUND)),
             f"  %k = fsub {V} %shifted, {constant(ROUND)}", f"  %bits = bitcast {V} %shifted to {W}"]
    for j, piece in enumerate(HALF_PI):
        lines.append(fma(f"r{j}", "%k", constant(-piece), f"%r{j - 1}" if j else "%x"))
    lines += [f"  %s = fmul {V} %r2, %r2", *polynomial("p", SINE), *polynomial("c", COSINE),
              f"  %rs = fmul {V} %r2, %s", fma("sine", "%rs", sine, "%r2"),
              fma("flat", "%s", constant(-0.5), constant(1.0)), f"  %ss = fmul {V} %s, %s",
              fma("cosine", "%ss", cosine, "%flat"),
              # an odd number of quarter turns exchanges them, two of them change the sign
              f"  %low = and {W} %bits, {whole(1)}", f"  %odd = icmp ne {W} %low, {whole(0)}",
              f"  %a = select {B} %odd, {V} %cosine, {V} %sine", f"  %b = select {B} %odd, {V} %sine, {V} %cosine",
              f"  %next = add {W} %bits, {whole(1)}"]
    for name, source, value in (("sin", "%bits", "%a"), ("cos", "%next", "%b")):
        lines += [f"  %{name}.two = and {W} {source}, {whole(2)}", f"  %{name}.sign = shl {W} %{name}.two, {whole(62)}",
                  f"  %{name}.bits = bitcast {V} {value} to {W}", f"  %{name}.signed = xor {W} %{name}.bits, %{name}.sign",
                  f"  %{name}.value = bitcast {W} %{name}.signed to {V}"]
    lines += _pair(V, "quick", "%sin.value", "%cos.value") + ["slow:"]
    for k in range(lanes):
        lines.append(f"  %x{k} = extractelement {V} %x, i64 {k}")
        for name in ("sin", "cos"):
            lines += [f"  %{name}{k} = call double @{name}(double %x{k})",
                      f"  %{name}.{k} = insertelement {V} {f'%{name}.{k - 1}' if k else 'poison'}, double %{name}{k}, i64 {k}"]
    lines += _pair(V, "slow", f"%sin.{lanes - 1}", f"%cos.{lanes - 1}")
    return "\n".join([*lines, "}"])


def _pair(V: str, name: str, sine: str, cosine: str) -> list[str]:
    return [f"  %{name}.first = insertvalue {{{V}, {V}}} poison, {V} {sine}, 0",
            f"  %{name}.pair = insertvalue {{{V}, {V}}} %{name}.first, {V} {cosine}, 1", f"  ret {{{V}, {V}}} %{name}.pair"]
