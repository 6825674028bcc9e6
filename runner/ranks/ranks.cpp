#include "ranks/ranks.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits.h>
#include <optional>
#include <string_view>
#include <unistd.h>

#include "error.hpp"

namespace headroom {

namespace {

constexpr uint16_t usual_port = 29500;  // of torchrun

// The names under which a launcher tells a process where it stands.
struct Launcher {
  const char *name, *rank, *count, *local_rank, *local_count;
};

constexpr std::array launchers = {
    Launcher{"headroom run --nproc", rank_variable, ranks_variable, rank_variable, ranks_variable},
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    // Of the step, which srun makes: a batch script has SLURM_NTASKS too, and is one process.
    Launcher{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
    Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Launcher{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

// -1: it is none.
int whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? number : -1;
}

// Slurm writes "4(x2),3" for two machines of four tasks and one of three: the largest of such numbers. Other text
// stays.
std::string_view most_tasks(std::string_view text) {
  std::string_view most = text.substr(0, text.find_first_of("(,"));
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma + 1), next = rest.substr(0, rest.find_first_of("(,"));
    if (whole_number(next) > whole_number(most)) most = next;
  }
  return most;
}

class Environment {
 public:
  explicit Environment(const Variable& variable) : variable_(variable) {}

  std::string text(const char* name) const {
    const char* value = variable_ ? variable_(name) : std::getenv(name);
    return value == nullptr ? "" : value;
  }

  // nullopt: not set. `least` and `most` are what it may be.
  std::optional<int> number(const char* name, int least, int most) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    const int number = whole_number(most_tasks(value));
    if (number >= least && number <= most) return number;
    throw Error(Exit::bad_input, "ranks",
                std::string("the environment variable ") + name + " is \"" + value + "\": a number from " +
                    std::to_string(least) + " to " + std::to_string(most) + " is expected of a launcher");
  }

 private:
  const Variable& variable_;
};

constexpr int most_ranks = 1 << 20;

// The same for all tasks of a step, and another one for the next.
uint16_t port_of_slurm_job(const Environment& environment) {
  const auto job = environment.number("SLURM_JOB_ID", 0, INT32_MAX).value_or(0);
  const auto step = environment.number("SLURM_STEP_ID", 0, INT32_MAX).value_or(0);
  return static_cast<uint16_t>(20000 + (static_cast<int64_t>(job) * 7 + step) % 10000);
}

void find_address(Ranks& ranks, const Environment& environment) {
  const bool slurm = ranks.launcher == "srun", told = !environment.text("MASTER_ADDR").empty();
  ranks.host = environment.text("MASTER_ADDR");
  if (!told && slurm) ranks.host = first_host(environment.text("SLURM_STEP_NODELIST"));
  if (!told && ranks.local_count == ranks.count) ranks.host = "127.0.0.1";
  ranks.port = static_cast<uint16_t>(
      environment.number("MASTER_PORT", 1, 65535).value_or(slurm ? port_of_slurm_job(environment) : usual_port));
  if (ranks.host.empty()) {
    throw Error(Exit::bad_input, "ranks",
                ranks.name() + " was started by " + ranks.launcher +
                    " on one of several machines, and does not know the machine of rank 0: set MASTER_ADDR to its "
                    "address for all of them");
  }
}

}  // namespace

std::string Ranks::name() const {
  return "rank " + std::to_string(number()) + " of " + std::to_string(elastic ? launched_count : count);
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "an unnamed host";
}

std::string first_host(const std::string& list) {
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket);
  const size_t closed = list.find(']', bracket);
  if (end == std::string::npos || closed == std::string::npos) return list;
  const size_t behind = list.find(',', closed);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
         list.substr(closed + 1, behind == std::string::npos ? behind : behind - closed - 1);
}

Ranks ranks_from_environment(const Variable& variable) {
  const Environment environment(variable);
  for (const Launcher& launcher : launchers) {
    const auto count = environment.number(launcher.count, 1, most_ranks);
    if (!count || environment.text(launcher.rank).empty()) continue;
    if (*count == 1) return {};
    Ranks ranks;
    ranks.launcher = launcher.name;
    ranks.count = *count;
    ranks.rank = *environment.number(launcher.rank, 0, *count - 1);
    ranks.local_rank = environment.number(launcher.local_rank, 0, *count - 1).value_or(0);
    ranks.local_count = environment.number(launcher.local_count, 1, *count).value_or(1);
    ranks.store_file = launcher.rank == rank_variable ? environment.text(ranks_store_variable) : "";
    if (ranks.store_file.empty()) find_address(ranks, environment);
    ranks.elastic = !ranks.store_file.empty() && !environment.text(ranks_elastic_variable).empty();
    ranks.launched_rank = ranks.rank;
    ranks.launched_count = ranks.count;
    ranks.comes_back = ranks.elastic && !environment.text(ranks_comes_back_variable).empty();
    if (ranks.comes_back && ranks.is_first()) ranks.rank = ranks.local_rank = ranks.count - 1;
    ranks.hosted_by_launcher = environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    ranks.attempt = environment.text("TORCHELASTIC_RESTART_COUNT");
    return ranks;
  }
  return {};
}

}  // namespace headroom
