// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_API_BUILDFITTING_H
#define ATTN_API_BUILDFITTING_H

#include "attn-rt/Cache.h"
#include "attn-rt/Compiler.h"
#include "attn/API/Compile.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace attn {

inline const rt::ResourceReport &reportOf(const rt::CompileOutput &output) { return output.report; }
inline const rt::ResourceReport &reportOf(const std::shared_ptr<const rt::CompiledKernel> &kernel) {
  return kernel->report;
}

/// A program and what was built of its kernels.
template <typename Built> struct BuiltProgram {
  Program program;
  std::vector<Built> kernels;
};

/// What `build` makes of the first program of a problem whose kernels fit their registers:
/// the tile sizes of the heuristic, or, where the compiler reports spills, its
/// fallbacks; of programs none of which fits, that which exceeds registers least. (Some kernels need all 255 registers,
/// and whether ptxas finds an allocation then differs from mask to mask.) `program` and `build` are called as
/// `program(fallback)` and `build(artifact)`; results of `build` have a `report`. Kernels are built at once, each
/// on a thread of its own, and so are fallbacks where there are processors for it: behind the first program that does
/// not fit, or beside one that is doubtful. A fallback with a kernel that is known not to fit is not tried.
template <typename MakeProgram, typename Build> class FittingBuild {
  using BuildResult = std::invoke_result_t<Build, const rt::Artifact &>;
  using Built = std::remove_reference_t<decltype(*std::declval<BuildResult &>())>;
  using Futures = std::vector<std::future<BuildResult>>;

public:
  using Result = rt::Result<BuiltProgram<Built>>;

  FittingBuild(MakeProgram program, Build build) : program(program), build(build) {}

  Result run() {
    const size_t many = std::thread::hardware_concurrency() >= 8 ? 4 : 1;
    size_t atOnce = 1;
    int fallback = 0;
    for (bool more = true; more; atOnce = many) {
      std::vector<std::unique_ptr<Candidate>> begun; // what is built refers to them
      while (begun.size() < atOnce && more) {
        rt::Result<Program> next = program(fallback++);
        if (!next)
          return next.error();
        more = next->hasFallback;
        if (hasMisfit(*next))
          continue;
        begun.push_back(std::make_unique<Candidate>(std::move(*next)));
        Candidate &candidate = *begun.back();
        candidate.main = begin(candidate.program.artifact());
        if (begun.size() == 1)
          beginOthers(candidate);
        // What a cache has is back by then, and needs nothing beside it.
        if (atOnce < many && candidate.program.mayNotFit &&
            begun.front()->main.wait_for(std::chrono::milliseconds(30)) != std::future_status::ready)
          atOnce = many;
      }
      for (std::unique_ptr<Candidate> &candidate : begun) {
        if (rt::Status done = finishMain(*candidate); !done)
          return done.error();
        if (candidate->excess == 0) {
          if (rt::Status done = finish(*candidate); !done)
            return done.error();
          if (candidate->excess == 0)
            return candidate->take();
        }
        tried.push_back(std::move(candidate));
      }
    }
    return least();
  }

private:
  struct Candidate {
    explicit Candidate(Program program) : program(std::move(program)) {}

    Program program;
    std::future<BuildResult> main;
    Futures others;           ///< all but the main kernel, in order
    std::vector<Built> built; ///< the main kernel, and then, if finished, all in order
    int64_t excess = 0;       ///< of what is built

    bool isFinished() const { return built.size() == program.kernels.size(); }
    BuiltProgram<Built> take() { return {std::move(program), std::move(built)}; }
  };

  std::future<BuildResult> begin(const rt::Artifact &artifact) {
    return std::async(std::launch::async, build, std::cref(artifact));
  }
  void beginOthers(Candidate &candidate) {
    if (candidate.isFinished() || !candidate.others.empty())
      return;
    for (auto [i, artifact] : llvm::enumerate(candidate.program.kernels))
      if (i != candidate.program.main)
        candidate.others.push_back(begin(artifact));
  }

  rt::Status finishMain(Candidate &candidate) {
    BuildResult result = candidate.main.get();
    if (!result)
      return result.error();
    candidate.built.push_back(std::move(*result));
    count(candidate, candidate.built.front(), candidate.program.artifact());
    return {};
  }
  rt::Status finish(Candidate &candidate) {
    if (candidate.isFinished())
      return {};
    beginOthers(candidate);
    Built main = std::move(candidate.built.front());
    candidate.built.clear();
    auto other = candidate.others.begin();
    for (auto [i, artifact] : llvm::enumerate(candidate.program.kernels)) {
      if (i == candidate.program.main) {
        candidate.built.push_back(std::move(main));
        continue;
      }
      BuildResult result = other++->get();
      if (!result)
        return result.error();
      candidate.built.push_back(std::move(*result));
      count(candidate, candidate.built.back(), artifact);
    }
    return {};
  }

  void count(Candidate &candidate, const Built &built, const rt::Artifact &artifact) {
    int64_t excess = reportOf(built).excess();
    candidate.excess += excess;
    if (excess > 0)
      misfits.push_back(artifact.source);
  }
  /// One that has been tried and found not to fit?
  bool hasMisfit(const Program &program) {
    return llvm::any_of(program.kernels,
                        [&](const rt::Artifact &kernel) { return llvm::is_contained(misfits, kernel.source); });
  }

  /// Of all that were tried, the first of those which exceed registers least.
  Result least() {
    for (std::unique_ptr<Candidate> &candidate : tried)
      beginOthers(*candidate);
    for (std::unique_ptr<Candidate> &candidate : tried)
      if (rt::Status done = finish(*candidate); !done)
        return done.error();
    return (*llvm::min_element(tried, [](auto &a, auto &b) { return a->excess < b->excess; }))->take();
  }

  MakeProgram program;
  Build build;
  std::vector<std::unique_ptr<Candidate>> tried;
  std::vector<std::string> misfits; ///< sources
};

template <typename MakeProgram, typename Build> auto buildFitting(MakeProgram program, Build build) {
  return FittingBuild<MakeProgram, Build>(program, build).run();
}

} // namespace attn

#endif // ATTN_API_BUILDFITTING_H
