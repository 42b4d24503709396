set bmargin 8.5
set ylabel 'accuracy over all σ_q, less that of query mixing'
set yrange [*:*]
set xrange [-0.6:{mechanisms.count}-0.4]
set xtics rotate by -35 ({@mechanisms:{#?, }'{name}' {#}})
set grid ytics
set key outside right center
place(k) = $0 + 0.18 * k - 0.27
plot 0 with lines lt -1 lw 1 notitle, \\
  'overall.csv' using (place(0)):(column('plain_gain')):(column('plain_gain_se')) with yerrorbars lt 1 title 'plain', \\
  'overall.csv' using (place(1)):(column('wrong_gain')):(column('wrong_gain_se')) with yerrorbars lt 2 title 'wrong', \\
  'overall.csv' using (place(2)):(column('space_gain')):(column('space_gain_se')) with yerrorbars lt 3 title 'space', \\
  'overall.csv' using (place(3)):(column('clusters_gain')):(column('clusters_gain_se')) with yerrorbars lt 4 title 'clusters'
