{parameters.load.1=null?|set logscale x 2
}set xlabel 'load  N/d'
set ylabel 'retrieval accuracy'
set yrange [0:1.02]
set key outside right center
plot \\
{@parameters.lambda:{#?, \\
}  'accuracy.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} && abs(column('alpha') - {parameters.alpha.0:.17g}) < 1e-12 && abs(column('sigma_q') - {parameters.sigma_q.0:.17g}) < 1e-12 ? column('load') : NaN):(column('accuracy')):(column('accuracy_se')) with yerrorbars lt {#%9+1:d} dt 1 lw 1 ps 0 notitle, \\
  'accuracy.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} && abs(column('alpha') - {parameters.alpha.0:.17g}) < 1e-12 && abs(column('sigma_q') - {parameters.sigma_q.0:.17g}) < 1e-12 ? column('load') : NaN):(column('accuracy')) with linespoints lt {#%9+1:d} title 'λ = {.:.6g}'}
