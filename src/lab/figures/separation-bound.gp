set xlabel 'effective separation gap  Δ'
set ylabel 'target probability  P(μ)'
set yrange [-0.02:1.02]
set xrange [{low:g}:{high:g}]
set key outside right center
plot \\
{@parameters.lambda:  'sample.csv' using (abs(column('lambda') - {.:.17g}) < 1e-9 ? column('gap') : NaN):(column('p')) with points lt {#%9+1:d} ps 0.35 lw 0.7 notitle, \\
  NaN with points lt {#%9+1:d} ps 0.9 title 'λ = {.:.6g}', \\
}  'bound.csv' using (column('gap')):(column('bound')) with lines lc rgb '#D00000' lw 3 dt 1 title 'lower bound'
