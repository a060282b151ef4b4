;; The product of a matrix and vectors, for product.js: the same sums in the same order as there.
;;
;;   y[i, r] = scale[r] * sum over c of weight[r, c] * x[i, c]
;;
;; `columns` is a multiple of 8. The sum has eight parts, one for each column modulo 8.
(module
  (import "engine" "memory" (memory 1))

  ;; A row of int8 as float32.
  (func $widen (param $from i32) (param $to i32) (param $columns i32)
    (local $end i32) (local $eight v128)
    (local.set $end (i32.add (local.get $from) (local.get $columns)))
    (loop $next
      (local.set $eight (v128.load8x8_s (local.get $from)))
      (v128.store (local.get $to)
        (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $eight))))
      (v128.store offset=16 (local.get $to)
        (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $eight))))
      (local.set $to (i32.add (local.get $to) (i32.const 32)))
      (local.set $from (i32.add (local.get $from) (i32.const 8)))
      (br_if $next (i32.lt_u (local.get $from) (local.get $end)))))

  (func $dot (param $a i32) (param $b i32) (param $columns i32) (result f32)
    (local $end i32) (local $first v128) (local $second v128)
    (local.set $end (i32.add (local.get $a) (i32.shl (local.get $columns) (i32.const 2))))
    (loop $next
      (local.set $first (f32x4.add (local.get $first)
        (f32x4.mul (v128.load (local.get $a)) (v128.load (local.get $b)))))
      (local.set $second (f32x4.add (local.get $second)
        (f32x4.mul (v128.load offset=16 (local.get $a)) (v128.load offset=16 (local.get $b)))))
      (local.set $a (i32.add (local.get $a) (i32.const 32)))
      (local.set $b (i32.add (local.get $b) (i32.const 32)))
      (br_if $next (i32.lt_u (local.get $a) (local.get $end))))
    (local.set $first (f32x4.add (local.get $first) (local.get $second)))
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $first)) (f32x4.extract_lane 1 (local.get $first)))
      (f32.add (f32x4.extract_lane 2 (local.get $first)) (f32x4.extract_lane 3 (local.get $first)))))

  ;; `scales` is 0 if the weights are float32; else they are int8, and $wide has room for a row.
  (func (export "multiply")
    (param $weights i32) (param $rows i32) (param $columns i32) (param $scales i32)
    (param $wide i32) (param $x i32) (param $count i32) (param $y i32)
    (local $r i32) (local $i i32) (local $row i32) (local $scale f32) (local $bytes i32)
    (local.set $bytes (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $scale (f32.const 1))
    (loop $next_row
      (if (local.get $scales)
        (then
          (call $widen
            (i32.add (local.get $weights) (i32.mul (local.get $r) (local.get $columns)))
            (local.get $wide) (local.get $columns))
          (local.set $row (local.get $wide))
          (local.set $scale
            (f32.load (i32.add (local.get $scales) (i32.shl (local.get $r) (i32.const 2))))))
        (else
          (local.set $row
            (i32.add (local.get $weights) (i32.mul (local.get $r) (local.get $bytes))))))
      (local.set $i (i32.const 0))
      (loop $next_vector
        (f32.store
          (i32.add (local.get $y) (i32.shl
            (i32.add (i32.mul (local.get $i) (local.get $rows)) (local.get $r)) (i32.const 2)))
          (f32.mul (local.get $scale) (call $dot (local.get $row)
            (i32.add (local.get $x) (i32.mul (local.get $i) (local.get $bytes)))
            (local.get $columns))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next_vector (i32.lt_u (local.get $i) (local.get $count))))
      (local.set $r (i32.add (local.get $r) (i32.const 1)))
      (br_if $next_row (i32.lt_u (local.get $r) (local.get $rows))))))
