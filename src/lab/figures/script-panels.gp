set multiplot
set label 1 "{caption}" at screen 0.01, screen {foot:.3f} font ',9' tc rgb '#555555'
