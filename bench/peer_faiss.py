"""faiss as a peer: exact top-1 and top-10 by inner product. See peer.py."""
import peer  # first: it limits the threads of the BLAS
import faiss

faiss.omp_set_num_threads(peer.threads)
Z = peer.bank()
index = faiss.IndexFlatIP(peer.d)
index.add(Z)
peer.report(top1_1=lambda: index.search(Z[:1], 1), top1_64=lambda: index.search(Z[:64], 1),
            top10_1=lambda: index.search(Z[:1], 10), top10_64=lambda: index.search(Z[:64], 10))
