set xlabel 'layer of x'
set ylabel 'held-out accuracy'
set xrange [-0.5:{high:g}]
set yrange [-0.02:1.02]
set key outside right center
plot \\
{icl=null?|  {icl:.6g} with lines lc rgb '#009E73' dt 1 lw 1.5 title 'with demonstrations', \\
}{mean=null?|  {mean:.6g} with lines lc rgb '#CC79A7' dt 2 lw 1.5 title 'mean y of the task', \\
}{zero_shot=null?|  {zero_shot:.6g} with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context', \\
}  'fit.csv' using (column('layer') + -0.12):(column('identity_{over}')):(column('identity_{over}_se')) with yerrorlines lc rgb '#000000' lw 1.5 pt 4 ps 0.7 dt 1 title 'P = I', \\
  'fit.csv' using (column('layer') + -0.04):(column('random_{over}')):(column('random_{over}_se')) with yerrorlines lc rgb '#999999' lw 1.5 pt 12 ps 0.7 dt 3 title 'random P, same spectrum', \\
  'fit.csv' using (column('layer') + 0.04):(column('ridge_{over}')):(column('ridge_{over}_se')) with yerrorlines lc rgb '#0072B2' lw 1.5 pt 7 ps 0.7 dt 1 title 'ridge', \\
{lowrank?  'fit.csv' using (column('layer') + 0.12):(column('lowrank_{over}')):(column('lowrank_{over}_se')) with yerrorlines lc rgb '#D55E00' lw 1.5 pt 9 ps 0.7 dt 1 title 'low rank', \\
}  NaN notitle
