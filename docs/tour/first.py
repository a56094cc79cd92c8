"""A mask, what a kernel does with it, and the kernel: for the GPU of this machine, or else for its CPU."""
import attnc

mask = attnc.causal() & (attnc.window(1024) | attnc.sink(4))
problem = attnc.Problem(mask, heads=(32, 8), dims=128)
print(problem.explain(batch=1, seqlen_q=4096))
print(problem.compile())
