set xlabel 'epoch'
set ylabel 'mean loss'
set key top right
set xrange [-0.02*{last:g}:1.02*{last:g}]
set arrow 1 from {best}, graph 0 to {best}, graph 1 nohead dt 3 lc rgb '#999999'
plot 'loss.csv' using (column('epoch')):(column('loss')) with lines lw 2 lc rgb '#0072B2' title 'steps', \\
  '' using (column('epoch')):(column('stop_loss')) with lines lw 1.5 dt 2 lc rgb '#009E73' title 'stopping part', \\
  '' using (column('epoch')):(column('held_out_loss')) with lines lw 2 lc rgb '#D55E00' title 'held out'
