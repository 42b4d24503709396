set tmargin at screen 0.92
set bmargin at screen 0.40
set lmargin at screen 0.075
set rmargin at screen 0.485
set key at screen 0.28, screen 0.27 center top
unset logscale y
set logscale x
set xrange [{low:.6g}:{high:.6g}]
set xlabel 'penalty α'
set format x '10^\{%L\}'
set xtics add ('0' {zero:.6g})
set arrow 1 from first {critical:.6g}, graph 0 to first {critical:.6g}, graph 1 nohead lc rgb '#888888' dt 3 lw 1.5
set arrow 2 from first {least:.6g}, graph 0 to first {least:.6g}, graph 1 nohead lc rgb '#bbbbbb' dt 2 lw 1.2
set title 'accuracy, held out'
set ylabel 'accuracy'
set yrange [-0.02:1.02]
plot \\
{@modes:  'gates.csv' using (column('shots') == {k:d} && column('coupled') == {coupled} ? (column('alpha') > 0 ? column('alpha') : {zero:.6g}) : NaN):(column('restricted')):(column('restricted_se')) with yerrorlines lt {style} lw {width} pt 7 ps 0.8 dt 1 title '{mode}, over labels', \\
}{@modes:  'gates.csv' using (column('shots') == {k:d} && column('coupled') == {coupled} ? (column('alpha') > 0 ? column('alpha') : {zero:.6g}) : NaN):(column('full')):(column('full_se')) with yerrorlines lt {style} lw {width} pt 6 ps 0.8 dt 2 title '{mode}, over words', \\
}  {zero_shot.restricted:.6g} with lines lt 8 lw 1.5 title 'zero-shot, labels', \\
  {icl.restricted:.6g} with lines lt 3 lw 1.5 title 'demonstrations, labels', \\
  {icl.full:.6g} with lines lt 3 lw 1.5 dt 2 title 'demonstrations, words'
unset label 1
set lmargin at screen 0.575
set rmargin at screen 0.985
set key at screen 0.78, screen 0.27 center top
set title 'effective number of words'
set ylabel 'N_\{eff\}'
set yrange [0.9:*]
set logscale y
set format y '%g'
plot \\
{@modes:  'gates.csv' using (column('shots') == {k:d} && column('coupled') == {coupled} ? (column('alpha') > 0 ? column('alpha') : {zero:.6g}) : NaN):(column('neff')) with linespoints lt {style} lw {width} pt 7 ps 0.8 title '{mode}', \\
}  NaN with lines lc rgb '#bbbbbb' dt 2 lw 1.2 title '1/μ_\{max\}', \\
  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'α_\{crit\}'
unset multiplot
