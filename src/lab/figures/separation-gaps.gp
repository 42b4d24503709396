set xlabel 'coupling  λ'
set ylabel 'gap Δ at σ_q ≈ 1'
set boxwidth 0.5
set style fill solid 0.25 border
set xrange [-0.6:{parameters.lambda.count-0.4:g}]
set key outside right center
set xtics ({@parameters.lambda:{#?, }'{.:.6g}' {#:d}})
plot \\
{@thresholds:  {gap:.17g} with lines lc rgb '#D00000' lw 1.5 dt {#+1:d} title 'P ≥ {epsilon*-1+1:.6g}', \\
}  'gaps.csv' using ($0):(column('q25')):(column('q05')):(column('q95')):(column('q75')) with candlesticks lc rgb '#0072B2' lw 1.5 dt 1 title '25-75%, 5-95%' whiskerbars, \\
  '' using ($0):(column('median')):(column('median')):(column('median')):(column('median')) with candlesticks lc rgb '#000000' lw 3 dt 1 notitle, \\
  NaN with lines lc rgb '#000000' lw 3 dt 1 title 'median'
