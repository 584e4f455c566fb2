;; What the engine computes many times, four numbers at a time. train-engine.js holds a twin of each
;; function that does the same in the same order, so both give the same bits: a lane is a number of
;; its own, and a sum over a row adds lane by lane, then ((0 + 1) + (2 + 3)), then what is left over.
;; Pointers and strides are bytes. Rows of a norm and what gelu and adam get come in fours.
(module
  (import "env" "memory" (memory 1))

  ;; C (m, n) += A (m, k) B (k, n). Both strides of A are free, so A may be a transpose, or one
  ;; number; the rows of B and C are contiguous. Each sum goes on from C, in the order of k.
  (func (export "mm")
    (param $a i32) (param $ar i32) (param $ac i32) (param $b i32) (param $br i32)
    (param $c i32) (param $cr i32) (param $m i32) (param $k i32) (param $n i32)
    (local $left i32) (local $j i32) (local $row i32)
    (block $done
      (loop $rows
        (br_if $done (i32.lt_s (local.get $m) (i32.const 4)))
        (local.set $left (local.get $n))
        (local.set $j (i32.const 0))
        (block $narrow
          (loop $columns
            (br_if $narrow (i32.lt_s (local.get $left) (i32.const 8)))
            (call $block (local.get $a) (local.get $ar) (local.get $ac)
              (i32.add (local.get $b) (local.get $j)) (local.get $br)
              (i32.add (local.get $c) (local.get $j)) (local.get $cr) (local.get $k))
            (local.set $j (i32.add (local.get $j) (i32.const 32)))
            (local.set $left (i32.sub (local.get $left) (i32.const 8)))
            (br $columns)))
        (local.set $row (i32.const 0))
        (loop $each
          (call $strip
            (i32.add (local.get $a) (i32.mul (local.get $row) (local.get $ar))) (local.get $ac)
            (i32.add (local.get $b) (local.get $j)) (local.get $br)
            (i32.add (i32.add (local.get $c) (local.get $j))
              (i32.mul (local.get $row) (local.get $cr)))
            (local.get $k) (local.get $left))
          (local.set $row (i32.add (local.get $row) (i32.const 1)))
          (br_if $each (i32.lt_s (local.get $row) (i32.const 4))))
        (local.set $a (i32.add (local.get $a) (i32.shl (local.get $ar) (i32.const 2))))
        (local.set $c (i32.add (local.get $c) (i32.shl (local.get $cr) (i32.const 2))))
        (local.set $m (i32.sub (local.get $m) (i32.const 4)))
        (br $rows)))
    (block $end
      (loop $last
        (br_if $end (i32.eqz (local.get $m)))
        (call $strip (local.get $a) (local.get $ac) (local.get $b) (local.get $br)
          (local.get $c) (local.get $k) (local.get $n))
        (local.set $a (i32.add (local.get $a) (local.get $ar)))
        (local.set $c (i32.add (local.get $c) (local.get $cr)))
        (local.set $m (i32.sub (local.get $m) (i32.const 1)))
        (br $last))))

  ;; Four rows of C and eight columns: what is read of A and B once serves several sums.
  (func $block
    (param $a i32) (param $ar i32) (param $ac i32) (param $b i32) (param $br i32)
    (param $c i32) (param $cr i32) (param $k i32)
    (local $a1 i32) (local $a2 i32) (local $a3 i32)
    (local $c1 i32) (local $c2 i32) (local $c3 i32)
    (local $s v128) (local $p v128) (local $q v128)
    (local $p0 v128) (local $p1 v128) (local $p2 v128) (local $p3 v128)
    (local $q0 v128) (local $q1 v128) (local $q2 v128) (local $q3 v128)
    (local.set $a1 (i32.add (local.get $a) (local.get $ar)))
    (local.set $a2 (i32.add (local.get $a1) (local.get $ar)))
    (local.set $a3 (i32.add (local.get $a2) (local.get $ar)))
    (local.set $c1 (i32.add (local.get $c) (local.get $cr)))
    (local.set $c2 (i32.add (local.get $c1) (local.get $cr)))
    (local.set $c3 (i32.add (local.get $c2) (local.get $cr)))
    (local.set $p0 (v128.load (local.get $c)))
    (local.set $q0 (v128.load offset=16 (local.get $c)))
    (local.set $p1 (v128.load (local.get $c1)))
    (local.set $q1 (v128.load offset=16 (local.get $c1)))
    (local.set $p2 (v128.load (local.get $c2)))
    (local.set $q2 (v128.load offset=16 (local.get $c2)))
    (local.set $p3 (v128.load (local.get $c3)))
    (local.set $q3 (v128.load offset=16 (local.get $c3)))
    (loop $sum
      (local.set $p (v128.load (local.get $b)))
      (local.set $q (v128.load offset=16 (local.get $b)))
      (local.set $s (v128.load32_splat (local.get $a)))
      (local.set $p0 (f32x4.add (local.get $p0) (f32x4.mul (local.get $s) (local.get $p))))
      (local.set $q0 (f32x4.add (local.get $q0) (f32x4.mul (local.get $s) (local.get $q))))
      (local.set $s (v128.load32_splat (local.get $a1)))
      (local.set $p1 (f32x4.add (local.get $p1) (f32x4.mul (local.get $s) (local.get $p))))
      (local.set $q1 (f32x4.add (local.get $q1) (f32x4.mul (local.get $s) (local.get $q))))
      (local.set $s (v128.load32_splat (local.get $a2)))
      (local.set $p2 (f32x4.add (local.get $p2) (f32x4.mul (local.get $s) (local.get $p))))
      (local.set $q2 (f32x4.add (local.get $q2) (f32x4.mul (local.get $s) (local.get $q))))
      (local.set $s (v128.load32_splat (local.get $a3)))
      (local.set $p3 (f32x4.add (local.get $p3) (f32x4.mul (local.get $s) (local.get $p))))
      (local.set $q3 (f32x4.add (local.get $q3) (f32x4.mul (local.get $s) (local.get $q))))
      (local.set $a (i32.add (local.get $a) (local.get $ac)))
      (local.set $a1 (i32.add (local.get $a1) (local.get $ac)))
      (local.set $a2 (i32.add (local.get $a2) (local.get $ac)))
      (local.set $a3 (i32.add (local.get $a3) (local.get $ac)))
      (local.set $b (i32.add (local.get $b) (local.get $br)))
      (local.set $k (i32.sub (local.get $k) (i32.const 1)))
      (br_if $sum (local.get $k)))
    (v128.store (local.get $c) (local.get $p0))
    (v128.store offset=16 (local.get $c) (local.get $q0))
    (v128.store (local.get $c1) (local.get $p1))
    (v128.store offset=16 (local.get $c1) (local.get $q1))
    (v128.store (local.get $c2) (local.get $p2))
    (v128.store offset=16 (local.get $c2) (local.get $q2))
    (v128.store (local.get $c3) (local.get $p3))
    (v128.store offset=16 (local.get $c3) (local.get $q3)))

  ;; One row of C, n columns: by fours, then one by one.
  (func $strip
    (param $a i32) (param $ac i32) (param $b i32) (param $br i32) (param $c i32)
    (param $k i32) (param $n i32)
    (local $i i32) (local $pa i32) (local $pb i32) (local $v v128) (local $s f32)
    (block $rest
      (loop $four
        (br_if $rest (i32.lt_s (local.get $n) (i32.const 4)))
        (local.set $v (v128.load (local.get $c)))
        (local.set $pa (local.get $a))
        (local.set $pb (local.get $b))
        (local.set $i (local.get $k))
        (loop $sum
          (local.set $v (f32x4.add (local.get $v)
            (f32x4.mul (v128.load32_splat (local.get $pa)) (v128.load (local.get $pb)))))
          (local.set $pa (i32.add (local.get $pa) (local.get $ac)))
          (local.set $pb (i32.add (local.get $pb) (local.get $br)))
          (local.set $i (i32.sub (local.get $i) (i32.const 1)))
          (br_if $sum (local.get $i)))
        (v128.store (local.get $c) (local.get $v))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (local.set $c (i32.add (local.get $c) (i32.const 16)))
        (local.set $n (i32.sub (local.get $n) (i32.const 4)))
        (br $four)))
    (block $end
      (loop $one
        (br_if $end (i32.eqz (local.get $n)))
        (local.set $s (f32.load (local.get $c)))
        (local.set $pa (local.get $a))
        (local.set $pb (local.get $b))
        (local.set $i (local.get $k))
        (loop $sum
          (local.set $s (f32.add (local.get $s)
            (f32.mul (f32.load (local.get $pa)) (f32.load (local.get $pb)))))
          (local.set $pa (i32.add (local.get $pa) (local.get $ac)))
          (local.set $pb (i32.add (local.get $pb) (local.get $br)))
          (local.set $i (i32.sub (local.get $i) (i32.const 1)))
          (br_if $sum (local.get $i)))
        (f32.store (local.get $c) (local.get $s))
        (local.set $b (i32.add (local.get $b) (i32.const 4)))
        (local.set $c (i32.add (local.get $c) (i32.const 4)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $one))))

  ;; exp(x) for x <= 0; 0 below -60, so that no product of it is denormal (Cephes, expf).
  (func $exp (param $x v128) (result v128)
    (local $n v128) (local $r v128) (local $y v128)
    (local.set $n (f32x4.sub
      (f32x4.add (f32x4.mul (local.get $x) (v128.const f32x4 1.44269504 1.44269504 1.44269504 1.44269504))
        (v128.const f32x4 12582912 12582912 12582912 12582912))
      (v128.const f32x4 12582912 12582912 12582912 12582912)))
    (local.set $r (f32x4.sub
      (f32x4.sub (local.get $x)
        (f32x4.mul (local.get $n) (v128.const f32x4 0.693359375 0.693359375 0.693359375 0.693359375)))
      (f32x4.mul (local.get $n) (v128.const f32x4 -2.12194440e-4 -2.12194440e-4 -2.12194440e-4 -2.12194440e-4))))
    (local.set $y (v128.const f32x4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $r))
      (v128.const f32x4 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $r))
      (v128.const f32x4 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $r))
      (v128.const f32x4 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $r))
      (v128.const f32x4 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $r))
      (v128.const f32x4 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1)))
    (local.set $y (f32x4.add
      (f32x4.add (f32x4.mul (local.get $y) (f32x4.mul (local.get $r) (local.get $r))) (local.get $r))
      (v128.const f32x4 1 1 1 1)))
    (v128.and
      (f32x4.mul (local.get $y)
        (i32x4.shl
          (i32x4.add (i32x4.trunc_sat_f32x4_s (local.get $n)) (v128.const i32x4 127 127 127 127))
          (i32.const 23)))
      (f32x4.ge (local.get $x) (v128.const f32x4 -60 -60 -60 -60))))

  ;; The sum of the lanes, two and two.
  (func $lanes (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  ;; Softmax of each of the rows (rows, n), in place; whole fours first, then one by one.
  (func (export "softmax") (param $x i32) (param $rows i32) (param $n i32)
    (local $p i32) (local $end i32) (local $fours i32) (local $top f32) (local $sum f32)
    (local $v v128) (local $s v128)
    (loop $row
      (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
      (local.set $fours (i32.add (local.get $x)
        (i32.shl (i32.and (local.get $n) (i32.const -4)) (i32.const 2))))
      (local.set $top (f32.load (local.get $x)))
      (local.set $p (local.get $x))
      (loop $max
        (local.set $top (f32.max (local.get $top) (f32.load (local.get $p))))
        (local.set $p (i32.add (local.get $p) (i32.const 4)))
        (br_if $max (i32.lt_u (local.get $p) (local.get $end))))
      (local.set $v (f32x4.splat (local.get $top)))
      (local.set $s (v128.const f32x4 0 0 0 0))
      (local.set $p (local.get $x))
      (block $rest
        (loop $four
          (br_if $rest (i32.ge_u (local.get $p) (local.get $fours)))
          (v128.store (local.get $p)
            (call $exp (f32x4.sub (v128.load (local.get $p)) (local.get $v))))
          (local.set $s (f32x4.add (local.get $s) (v128.load (local.get $p))))
          (local.set $p (i32.add (local.get $p) (i32.const 16)))
          (br $four)))
      (local.set $sum (call $lanes (local.get $s)))
      (block $whole
        (loop $one
          (br_if $whole (i32.ge_u (local.get $p) (local.get $end)))
          (f32.store (local.get $p) (f32x4.extract_lane 0
            (call $exp (f32x4.splat (f32.sub (f32.load (local.get $p)) (local.get $top))))))
          (local.set $sum (f32.add (local.get $sum) (f32.load (local.get $p))))
          (local.set $p (i32.add (local.get $p) (i32.const 4)))
          (br $one)))
      (loop $divide
        (f32.store (local.get $x) (f32.div (f32.load (local.get $x)) (local.get $sum)))
        (local.set $x (i32.add (local.get $x) (i32.const 4)))
        (br_if $divide (i32.lt_u (local.get $x) (local.get $end))))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; The gradient d of the softmax p becomes that of its scores, times scale: p (d - sum(p d)) scale.
  (func (export "softmaxBack")
    (param $p i32) (param $d i32) (param $rows i32) (param $n i32) (param $scale f32)
    (local $i i32) (local $end i32) (local $fours i32) (local $sum f32) (local $s v128)
    (loop $row
      (local.set $end (i32.shl (local.get $n) (i32.const 2)))
      (local.set $fours (i32.shl (i32.and (local.get $n) (i32.const -4)) (i32.const 2)))
      (local.set $s (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (block $rest
        (loop $four
          (br_if $rest (i32.ge_u (local.get $i) (local.get $fours)))
          (local.set $s (f32x4.add (local.get $s) (f32x4.mul
            (v128.load (i32.add (local.get $p) (local.get $i)))
            (v128.load (i32.add (local.get $d) (local.get $i))))))
          (local.set $i (i32.add (local.get $i) (i32.const 16)))
          (br $four)))
      (local.set $sum (call $lanes (local.get $s)))
      (block $whole
        (loop $one
          (br_if $whole (i32.ge_u (local.get $i) (local.get $end)))
          (local.set $sum (f32.add (local.get $sum) (f32.mul
            (f32.load (i32.add (local.get $p) (local.get $i)))
            (f32.load (i32.add (local.get $d) (local.get $i))))))
          (local.set $i (i32.add (local.get $i) (i32.const 4)))
          (br $one)))
      (local.set $end (i32.add (local.get $d) (local.get $end)))
      (loop $each
        (f32.store (local.get $d) (f32.mul
          (f32.mul (f32.load (local.get $p)) (f32.sub (f32.load (local.get $d)) (local.get $sum)))
          (local.get $scale)))
        (local.set $p (i32.add (local.get $p) (i32.const 4)))
        (local.set $d (i32.add (local.get $d) (i32.const 4)))
        (br_if $each (i32.lt_u (local.get $d) (local.get $end))))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; LayerNorm of each row (rows, 4 n); mean and 1 / deviation of a row go to stats (rows, 2).
  (func (export "norm")
    (param $x i32) (param $y i32) (param $stats i32) (param $w i32) (param $b i32)
    (param $rows i32) (param $width i32) (param $eps f32)
    (local $i i32) (local $bytes i32) (local $mean f32) (local $rate f32)
    (local $s v128) (local $m v128) (local $v v128)
    (local.set $bytes (i32.shl (local.get $width) (i32.const 2)))
    (loop $row
      (local.set $s (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (loop $add
        (local.set $s (f32x4.add (local.get $s) (v128.load (i32.add (local.get $x) (local.get $i)))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br_if $add (i32.lt_u (local.get $i) (local.get $bytes))))
      (local.set $mean
        (f32.div (call $lanes (local.get $s)) (f32.convert_i32_u (local.get $width))))
      (local.set $m (f32x4.splat (local.get $mean)))
      (local.set $s (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (loop $spread
        (local.set $v
          (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m)))
        (local.set $s (f32x4.add (local.get $s) (f32x4.mul (local.get $v) (local.get $v))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br_if $spread (i32.lt_u (local.get $i) (local.get $bytes))))
      (local.set $rate (f32.div (f32.const 1) (f32.sqrt (f32.add (local.get $eps)
        (f32.div (call $lanes (local.get $s)) (f32.convert_i32_u (local.get $width)))))))
      (f32.store (local.get $stats) (local.get $mean))
      (f32.store offset=4 (local.get $stats) (local.get $rate))
      (local.set $i (i32.const 0))
      (loop $set
        (v128.store (i32.add (local.get $y) (local.get $i))
          (f32x4.add
            (f32x4.mul
              (f32x4.mul
                (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m))
                (f32x4.splat (local.get $rate)))
              (v128.load (i32.add (local.get $w) (local.get $i))))
            (v128.load (i32.add (local.get $b) (local.get $i)))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br_if $set (i32.lt_u (local.get $i) (local.get $bytes))))
      (local.set $x (i32.add (local.get $x) (local.get $bytes)))
      (local.set $y (i32.add (local.get $y) (local.get $bytes)))
      (local.set $stats (i32.add (local.get $stats) (i32.const 8)))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; The gradient d of a norm's output: dx, dw and db grow by it.
  (func (export "normBack")
    (param $x i32) (param $stats i32) (param $w i32) (param $d i32)
    (param $dx i32) (param $dw i32) (param $db i32) (param $rows i32) (param $width i32)
    (local $i i32) (local $bytes i32) (local $size f32)
    (local $m v128) (local $r v128) (local $g v128) (local $h v128) (local $s v128) (local $t v128)
    (local.set $bytes (i32.shl (local.get $width) (i32.const 2)))
    (local.set $size (f32.convert_i32_u (local.get $width)))
    (loop $row
      (local.set $m (v128.load32_splat (local.get $stats)))
      (local.set $r (v128.load32_splat offset=4 (local.get $stats)))
      (local.set $s (v128.const f32x4 0 0 0 0))
      (local.set $t (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (loop $add
        (local.set $h (f32x4.mul (local.get $r)
          (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m))))
        (local.set $g (v128.load (i32.add (local.get $d) (local.get $i))))
        (v128.store (i32.add (local.get $dw) (local.get $i)) (f32x4.add
          (v128.load (i32.add (local.get $dw) (local.get $i)))
          (f32x4.mul (local.get $g) (local.get $h))))
        (v128.store (i32.add (local.get $db) (local.get $i)) (f32x4.add
          (v128.load (i32.add (local.get $db) (local.get $i))) (local.get $g)))
        (local.set $g
          (f32x4.mul (local.get $g) (v128.load (i32.add (local.get $w) (local.get $i)))))
        (local.set $s (f32x4.add (local.get $s) (local.get $g)))
        (local.set $t (f32x4.add (local.get $t) (f32x4.mul (local.get $g) (local.get $h))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br_if $add (i32.lt_u (local.get $i) (local.get $bytes))))
      (local.set $s (f32x4.splat (f32.div (call $lanes (local.get $s)) (local.get $size))))
      (local.set $t (f32x4.splat (f32.div (call $lanes (local.get $t)) (local.get $size))))
      (local.set $i (i32.const 0))
      (loop $set
        (local.set $h (f32x4.mul (local.get $r)
          (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $m))))
        (local.set $g (f32x4.mul (v128.load (i32.add (local.get $d) (local.get $i)))
          (v128.load (i32.add (local.get $w) (local.get $i)))))
        (v128.store (i32.add (local.get $dx) (local.get $i)) (f32x4.add
          (v128.load (i32.add (local.get $dx) (local.get $i)))
          (f32x4.mul (local.get $r) (f32x4.sub (f32x4.sub (local.get $g) (local.get $s))
            (f32x4.mul (local.get $h) (local.get $t))))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br_if $set (i32.lt_u (local.get $i) (local.get $bytes))))
      (local.set $x (i32.add (local.get $x) (local.get $bytes)))
      (local.set $d (i32.add (local.get $d) (local.get $bytes)))
      (local.set $dx (i32.add (local.get $dx) (local.get $bytes)))
      (local.set $stats (i32.add (local.get $stats) (i32.const 8)))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; The share of a normal distribution below x: (1 + erf(x / sqrt 2)) / 2, by Abramowitz and Stegun
  ;; 7.1.26, off by 1e-7. Its e is exp(-x x / 2), which the caller has.
  (func $below (param $x v128) (param $e v128) (result v128)
    (local $t v128) (local $y v128)
    (local.set $t (f32x4.div (v128.const f32x4 1 1 1 1)
      (f32x4.add (v128.const f32x4 1 1 1 1)
        (f32x4.mul (f32x4.abs (local.get $x))
          (v128.const f32x4 0.231641888 0.231641888 0.231641888 0.231641888)))))
    (local.set $y (v128.const f32x4 0.530702715 0.530702715 0.530702715 0.530702715))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $t))
      (v128.const f32x4 -0.726576014 -0.726576014 -0.726576014 -0.726576014)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $t))
      (v128.const f32x4 0.710706871 0.710706871 0.710706871 0.710706871)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $t))
      (v128.const f32x4 -0.142248368 -0.142248368 -0.142248368 -0.142248368)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $t))
      (v128.const f32x4 0.127414796 0.127414796 0.127414796 0.127414796)))
    (local.set $y (f32x4.mul (f32x4.mul (local.get $y) (local.get $t)) (local.get $e)))
    (v128.bitselect (local.get $y)
      (f32x4.sub (v128.const f32x4 1 1 1 1) (local.get $y))
      (f32x4.lt (local.get $x) (v128.const f32x4 0 0 0 0))))

  ;; y = x times the share of a normal distribution below x; n numbers.
  (func (export "gelu") (param $x i32) (param $y i32) (param $n i32)
    (local $end i32) (local $v v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $four
      (local.set $v (v128.load (local.get $x)))
      (v128.store (local.get $y) (f32x4.mul (local.get $v) (call $below (local.get $v)
        (call $exp (f32x4.mul (f32x4.mul (local.get $v) (local.get $v))
          (v128.const f32x4 -0.5 -0.5 -0.5 -0.5))))))
      (local.set $x (i32.add (local.get $x) (i32.const 16)))
      (local.set $y (i32.add (local.get $y) (i32.const 16)))
      (br_if $four (i32.lt_u (local.get $x) (local.get $end)))))

  ;; The gradient d of gelu's output becomes that of x.
  (func (export "geluBack") (param $x i32) (param $d i32) (param $n i32)
    (local $end i32) (local $v v128) (local $e v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $n) (i32.const 2))))
    (loop $four
      (local.set $v (v128.load (local.get $x)))
      (local.set $e (call $exp (f32x4.mul (f32x4.mul (local.get $v) (local.get $v))
        (v128.const f32x4 -0.5 -0.5 -0.5 -0.5))))
      (v128.store (local.get $d) (f32x4.mul (v128.load (local.get $d))
        (f32x4.add (call $below (local.get $v) (local.get $e))
          (f32x4.mul (f32x4.mul (local.get $v) (local.get $e))
            (v128.const f32x4 0.398942280 0.398942280 0.398942280 0.398942280)))))
      (local.set $x (i32.add (local.get $x) (i32.const 16)))
      (local.set $d (i32.add (local.get $d) (i32.const 16)))
      (br_if $four (i32.lt_u (local.get $x) (local.get $end)))))

  ;; One step of AdamW for n numbers, as PyTorch's: the gradient g is 0 afterwards. Gradients and
  ;; means that are nearly 0 become 0: half of a very small number is denormal, and slow.
  (func (export "adam")
    (param $w i32) (param $g i32) (param $m i32) (param $v i32) (param $n i32)
    (param $keep f32) (param $step f32) (param $root f32)
    (param $first f32) (param $second f32) (param $eps f32)
    (local $end i32) (local $d v128) (local $p v128) (local $q v128)
    (local.set $end (i32.add (local.get $w) (i32.shl (local.get $n) (i32.const 2))))
    (loop $four
      (local.set $d (call $flush (v128.load (local.get $g)) (f32.const 1e-15)))
      (v128.store (local.get $g) (v128.const f32x4 0 0 0 0))
      (local.set $p (call $flush (f32x4.add
        (f32x4.mul (v128.load (local.get $m)) (f32x4.splat (local.get $first)))
        (f32x4.mul (local.get $d) (f32x4.splat (f32.sub (f32.const 1) (local.get $first)))))
        (f32.const 1e-25)))
      (local.set $q (call $flush (f32x4.add
        (f32x4.mul (v128.load (local.get $v)) (f32x4.splat (local.get $second)))
        (f32x4.mul (f32x4.mul (local.get $d) (local.get $d))
          (f32x4.splat (f32.sub (f32.const 1) (local.get $second)))))
        (f32.const 1e-35)))
      (v128.store (local.get $m) (local.get $p))
      (v128.store (local.get $v) (local.get $q))
      (v128.store (local.get $w) (f32x4.sub
        (f32x4.mul (v128.load (local.get $w)) (f32x4.splat (local.get $keep)))
        (f32x4.mul (f32x4.splat (local.get $step)) (f32x4.div (local.get $p)
          (f32x4.add (f32x4.div (f32x4.sqrt (local.get $q)) (f32x4.splat (local.get $root)))
            (f32x4.splat (local.get $eps)))))))
      (local.set $w (i32.add (local.get $w) (i32.const 16)))
      (local.set $g (i32.add (local.get $g) (i32.const 16)))
      (local.set $m (i32.add (local.get $m) (i32.const 16)))
      (local.set $v (i32.add (local.get $v) (i32.const 16)))
      (br_if $four (i32.lt_u (local.get $w) (local.get $end)))))

  ;; 0 for each number whose size is below the least.
  (func $flush (param $v v128) (param $least f32) (result v128)
    (v128.and (local.get $v) (f32x4.ge (f32x4.abs (local.get $v)) (f32x4.splat (local.get $least)))))
)
