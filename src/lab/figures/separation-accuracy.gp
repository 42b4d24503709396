set xlabel 'query noise  σ_q'
set ylabel 'retrieval accuracy'
set yrange [0:1.02]
set key outside right center
plot \\
{@parameters.lambda:{#?, \\
}  'accuracy.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('sigma_q') : NaN):(column('accuracy')):(column('accuracy_se')) with yerrorbars lt {#%9+1:d} dt 1 lw 1 ps 0 notitle, \\
  'accuracy.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('sigma_q') : NaN):(column('accuracy')) with linespoints lt {#%9+1:d} title 'λ = {.:.6g}'}
