Experiments on language models by themselves: inject, gates and fit.
### layer axis
set xlabel '{x}'
set ylabel '{y}'
set xrange [-0.5:{high}]
set yrange [-0.02:1.02]
set key outside right center
plot \
### end
  NaN notitle
### inject line
  {y} with lines lt {style} lw 1.5 title '{title}', \
### inject control
  '+' using ({layer}):({y}) every ::0::0 with points lt {style} pt {point} ps 1.4 lw 2 title '{title}', \
### inject curve
  'inject.csv' using (column('shots') == {shots} && column('kind') == {kind} && abs(column('scale') - {scale}) < 1e-9 ? column('layer') + {shift} : NaN):(column('accuracy')):(column('se')) with yerrorlines lw 2 pt {point} ps 0.7 lc rgb '{colour}' dt {dash} title '{title}', \
### fit line
  {y} with lines lc rgb '{colour}' dt {dash} lw 1.5 title '{title}', \
### fit curve
  'fit.csv' using (column('layer') + {shift}):(column('{key}_{over}')):(column('{key}_{over}_se')) with yerrorlines lc rgb '{colour}' lw 1.5 pt {point} ps 0.7 dt {dash} title '{title}', \
### gates
set tmargin at screen 0.92
set bmargin at screen 0.40
set lmargin at screen 0.075
set rmargin at screen 0.485
set key at screen 0.28, screen 0.27 center top
unset logscale y
set logscale x
set xrange [{low}:{high}]
set xlabel 'penalty α'
set format x '10^{%L}'
set xtics add ('0' {zero})
set arrow 1 from first {critical}, graph 0 to first {critical}, graph 1 nohead lc rgb '#888888' dt 3 lw 1.5
set arrow 2 from first {least}, graph 0 to first {least}, graph 1 nohead lc rgb '#bbbbbb' dt 2 lw 1.2
set title 'accuracy, held out'
set ylabel 'accuracy'
set yrange [-0.02:1.02]
plot \
### gates accuracy
  'gates.csv' using (column('shots') == {shots} && column('coupled') == {coupled} ? (column('alpha') > 0 ? column('alpha') : {zero}) : NaN):(column('{y}')):(column('{y}_se')) with yerrorlines lt {style} lw {width} pt {point} ps 0.8 dt {dash} title '{mode}, over {over}', \
### gates levels
  {zero_shot} with lines lt 8 lw 1.5 title 'zero-shot, labels', \
  {icl} with lines lt 3 lw 1.5 title 'demonstrations, labels', \
  {icl_words} with lines lt 3 lw 1.5 dt 2 title 'demonstrations, words'
unset label 1
set lmargin at screen 0.575
set rmargin at screen 0.985
set key at screen 0.78, screen 0.27 center top
set title 'effective number of words'
set ylabel 'N_{eff}'
set yrange [0.9:*]
set logscale y
set format y '%g'
plot \
### gates neff
  'gates.csv' using (column('shots') == {shots} && column('coupled') == {coupled} ? (column('alpha') > 0 ? column('alpha') : {zero}) : NaN):(column('neff')) with linespoints lt {style} lw {width} pt 7 ps 0.8 title '{mode}', \
### gates end
  NaN with lines lc rgb '#bbbbbb' dt 2 lw 1.2 title '1/μ_{max}', \
  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'α_{crit}'
unset multiplot
### spectrum
set logscale xy
set xlabel 'mode'
set ylabel 'eigenvalue of Z^TZ'
set format y '10^{%L}'
set key top right
plot 'gates_spectrum.csv' using (column('mode') + 1):(column('mu') > 0 ? column('mu') : NaN) with lines lt 1 lw 2 title 'spectrum, {rows} rows', \
  {critical} with lines lc rgb '#888888' dt 3 lw 1.5 title '1/α_{crit}'
