set xlabel 'query noise  σ_q'
set ylabel 'retrieval accuracy'
set yrange [0:1.02]
set key outside right center
plot \\
{@mechanisms:{#?, \\
}  'accuracy.csv' using (strcol('mechanism') eq '{name}' ? column('sigma_q') : NaN):(column('accuracy')):(column('accuracy_se')) with yerrorbars lt {#%8+1:d} dt 1 lw 1 ps 0 notitle, \\
  'accuracy.csv' using (strcol('mechanism') eq '{name}' ? column('sigma_q') : NaN):(column('accuracy')) with linespoints lt {#%8+1:d} dt {#/8+1:d} title '{name}'}
