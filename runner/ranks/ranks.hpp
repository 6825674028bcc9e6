// ranks/: one run in many processes. Start here.
//
//   ranks         (this file) which of a run's processes this one is, as its launcher says in the environment
//   launch        `headroom run --nproc N`: starts N processes on this machine and sees them to their end
//   rank_process  one of these: how it is started, and what it says
//   watch         whether all of them are still there, over sockets
//   group         what they say to each other: sums, texts, agreement
//   gloo_backend  the collectives that they say it by
//   gloo_threads  whether a collective that does not end is stuck for good
//   agreement     that all of them run the same thing
//   lost_note     which of them is lost, for the post-mortem
//   members       who is left of them, for a run that goes on without those that were killed
//
// Only group, agreement and gloo_backend need LibTorch: the collectives are its c10d, over Gloo.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace headroom {

// One process is a rank. A value: it makes and opens nothing.
struct Ranks {
  int rank = 0, count = 1;
  int local_rank = 0, local_count = 1;  // on this machine
  std::string launcher;                 // "torchrun", for messages; "" where the process is alone
  // Where the ranks find each other: a file of this machine, or else the address of rank 0.
  std::string store_file;
  std::string host;
  uint16_t port = 0;
  bool hosted_by_launcher = false;  // the launcher listens at that address, not rank 0
  std::string attempt;              // of a launcher that starts a run again
  // Of a run that may go on without a rank that is killed: its launcher says who is left (members.hpp). Then `rank` and
  // `count` are of those that are left, and these are as the launcher has it.
  bool elastic = false;
  int launched_rank = 0, launched_count = 1;
  // It was started in place of one that was killed, and has not met the others yet. Until then it is not the first.
  bool comes_back = false;

  bool alone() const { return count == 1; }
  bool is_first() const { return rank == 0; }
  int number() const { return elastic ? launched_rank : rank; }  // that it goes by, as launched
  std::string name() const;                                      // "rank 1 of 4", as launched
};

// By `headroom run --nproc`, torchrun, srun, or mpirun of Open MPI or MPICH, whichever is found first. A batch script
// of Slurm that was not started by srun is alone. Error(bad_input) for numbers that cannot be. `variable` replaces
// getenv() in tests. [any]
using Variable = std::function<const char*(const char* name)>;
Ranks ranks_from_environment(const Variable& variable = {});

std::string host_name();  // of this machine

// The first host of "node[03-05,9],other", as Slurm writes lists.
std::string first_host(const std::string& list);

// What `headroom run --nproc` tells its processes.
inline constexpr const char* rank_variable = "HEADROOM_RANK";
inline constexpr const char* ranks_variable = "HEADROOM_RANKS";
inline constexpr const char* ranks_store_variable = "HEADROOM_RANKS_STORE";
inline constexpr const char* ranks_elastic_variable = "HEADROOM_RANKS_ELASTIC";
inline constexpr const char* ranks_comes_back_variable = "HEADROOM_RANKS_COMES_BACK";

}  // namespace headroom
