set multiplot
set xlabel 'basin'
set ylabel 'energy above the lowest'
set key top right horizontal samplen 1
set xrange [*:*]
set yrange [*:*]
H = 0
stats 'landscape.csv' using (column('context') == 0 ? column('energy') : NaN) nooutput name 'E0'
H = E0_max - E0_min > H ? E0_max - E0_min : H
{context?stats 'landscape.csv' using (column('context') == 1 ? column('energy') : NaN) nooutput name 'E1'
H = E1_max - E1_min > H ? E1_max - E1_min : H
}H = H == 0 ? 1 : H
set xrange [-0.04:1.08]
set yrange [-0.06*H:1.25*H]
set lmargin at screen {context?0.100|0.160}
set rmargin at screen {context?0.490|0.960}
set title '{context?without context}'
E_min = E0_min
plot 'landscape.csv' using (column('context') == 0 && column('minimum') == 1 ? column('basin') : NaN):(column('energy') - E_min) with points pt 7 ps 0.9 lc rgb '#1f6f9f' title 'minimum, its winner', \\
  '' using (column('context') == 0 && column('minimum') == 0 ? column('basin') : NaN):(column('energy') - E_min) with points pt 8 ps 1 lc rgb '#b2532c' title 'saddle', \\
  '' using (column('context') == 0 && column('basin') >= 0.02 ? column('basin') : NaN):(column('energy') - E_min):(gprintf('%.0f', column('winner'))) with labels offset 1.3,0.3 font ',9' notitle
{context?set lmargin at screen 0.600
set rmargin at screen 0.990
set title 'under the context'
E_min = E1_min
plot 'landscape.csv' using (column('context') == 1 && column('minimum') == 1 ? column('basin') : NaN):(column('energy') - E_min) with points pt 7 ps 0.9 lc rgb '#1f6f9f' title 'minimum, its winner', \\
  '' using (column('context') == 1 && column('minimum') == 0 ? column('basin') : NaN):(column('energy') - E_min) with points pt 8 ps 1 lc rgb '#b2532c' title 'saddle', \\
  '' using (column('context') == 1 && column('basin') >= 0.02 ? column('basin') : NaN):(column('energy') - E_min):(gprintf('%.0f', column('winner'))) with labels offset 1.3,0.3 font ',9' notitle
}unset multiplot
