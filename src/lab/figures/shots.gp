set xlabel 'demonstrations'
set yrange [-0.02:1.02]
unset key
set logscale x 2
set xrange [{first:g}:{last:g}]
set tmargin at screen 0.91
set bmargin at screen 0.33
set ylabel 'accuracy, held out'
set lmargin at screen 0.085
set rmargin at screen 0.495
set title 'over the labels'
set xtics ({@shots:{#?, }'{k:d}' {k:d}})
plot \\
  $over0 using ($1*0.9400):2:3 with yerrorlines lt 8 lw 2.5 notitle, \\
  $over0 using ($1*0.9600):4:5 with yerrorlines lt 2 lw 2.5 notitle, \\
  $over0 using ($1*0.9800):6:7 with yerrorlines lt 1 lw 2.5 notitle, \\
  $over0 using ($1*1.0000):8:9 with yerrorlines lt 4 lw 1.5 notitle, \\
  $over0 using ($1*1.0200):10:11 with yerrorlines lt 5 lw 1.5 notitle, \\
  $over0 using ($1*1.0400):12:13 with yerrorlines lt 6 lw 1.5 notitle, \\
  $over0 using ($1*1.0600):14:15 with yerrorlines lt 7 lw 1.5 notitle, \\
  {chance:.6g} with lines lc rgb '#888888' dt 3 lw 1.5 notitle
set lmargin at screen 0.570
set rmargin at screen 0.980
set title 'over the whole vocabulary'
unset label 1
unset ylabel
set xtics ({@shots:{#?, }'{k:d}' {k:d}})
plot \\
  $over1 using ($1*0.9400):2:3 with yerrorlines lt 8 lw 2.5 notitle, \\
  $over1 using ($1*0.9600):4:5 with yerrorlines lt 2 lw 2.5 notitle, \\
  $over1 using ($1*0.9800):6:7 with yerrorlines lt 1 lw 2.5 notitle, \\
  $over1 using ($1*1.0000):8:9 with yerrorlines lt 4 lw 1.5 notitle, \\
  $over1 using ($1*1.0200):10:11 with yerrorlines lt 5 lw 1.5 notitle, \\
  $over1 using ($1*1.0400):12:13 with yerrorlines lt 6 lw 1.5 notitle, \\
  NaN notitle
unset label 1
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 0.170
set bmargin at screen 0.060
unset border
unset tics
unset grid
unset title
unset colorbox
unset xlabel
unset ylabel
unset logscale
set xrange [0:1]
set yrange [0:1]
set key center center horizontal maxrows 2
plot \\
  NaN with linespoints lt 8 lw 2.5 title 'zero-shot', \\
  NaN with linespoints lt 2 lw 2.5 title 'with demonstrations', \\
  NaN with linespoints lt 1 lw 2.5 title 'query + λ context', \\
  NaN with linespoints lt 4 lw 1.5 title 'flipped demonstrations', \\
  NaN with linespoints lt 5 lw 1.5 title 'context of another task', \\
  NaN with linespoints lt 6 lw 1.5 title 'mean of the label rows', \\
  NaN with linespoints lt 7 lw 1.5 title 'zero-shot, centred', \\
  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'chance'
set border 3
set tics nomirror out
set xtics nomirror out
set ytics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
unset key
unset multiplot
