// Muon (Keller Jordan et al. 2024): the momentum of a matrix is replaced by the nearest orthogonal matrix, found by a
// few steps of Newton and Schulz; vectors, and what `adam` names, are trained as by AdamW. The smallest optimizer
// plugin that is worth running. Plain loops on one thread: for matrices of some hundred rows.
#include <algorithm>
#include <cmath>
#include <fnmatch.h>

#include "headroom/optimizer.hpp"

namespace {

using namespace headroom::sdk;

// A parameter as the method sees it: a kernel of a convolution is a matrix with a row for each output.
struct Matrix {
  explicit Matrix(const Trained& parameter)
      : rows(parameter.shape().size() < 2 ? 1 : static_cast<std::size_t>(parameter.shape()[0])),
        columns(rows == 0 ? 0 : parameter.elements() / rows) {}
  std::size_t rows, columns;
  std::size_t small() const { return std::min(rows, columns); }
};

// c += a b, of a [m, k] and b [k, n].
template <class T>
void add_product(const T* a, const T* b, T* c, std::size_t m, std::size_t k, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t l = 0; l < k; ++l) {
      const T factor = a[i * k + l];
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += factor * b[l * n + j];
    }
  }
}

// c = a a^T, of a [m, n].
template <class T>
void gram(const T* a, T* c, std::size_t m, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      T sum = 0;
      for (std::size_t l = 0; l < n; ++l) sum += a[i * n + l] * a[j * n + l];
      c[i * m + j] = c[j * m + i] = sum;
    }
  }
}

class Muon {
 public:
  static OptionList options() {
    return {opt_f64("momentum").def(0.95).min(0).help("decay of the momentum of matrices"),
            opt_bool("nesterov").def(true).help("look ahead along the momentum"),
            opt_i64("ns_steps").def(5).min(1).max(50).help("steps of Newton and Schulz"),
            opt_strings("adam").def("[]").help(
                "name patterns (*, ?) of matrices to train as vectors: embeddings, the head"),
            opt_f64("adam_lr_scale").def(0.015).min(0).help("factor of train.optimizer.lr for all that is no matrix"),
            opt_f64s("betas").def("[0.9, 0.95]").min(0).help("decay of the two moments of all that is no matrix"),
            opt_f64("eps").def(1e-8).min(0).help("added to the root of the second moment")};
  }

  explicit Muon(const Options& options)
      : momentum_(options.f64("momentum")),
        nesterov_(options.boolean("nesterov")),
        ns_steps_(options.i64("ns_steps")),
        adam_(options.list_string("adam")),
        adam_lr_scale_(options.f64("adam_lr_scale")),
        betas_(options.list_f64("betas")),
        eps_(options.f64("eps")) {
    if (momentum_ >= 1) invalid("momentum is " + std::to_string(momentum_) + "; it must be below 1");
    if (betas_.size() != 2 || betas_[0] >= 1 || betas_[1] >= 1) invalid("betas must be two numbers below 1");
  }

  std::vector<State> state(const Trained& parameter) const {
    if (is_matrix(parameter)) return {{"momentum", parameter.elements()}};
    return {{"exp_avg", parameter.elements()}, {"exp_avg_sq", parameter.elements()}};
  }

  // Two matrices of the parameter's size and two of its smaller side squared.
  uint64_t scratch(const Trained& parameter) const {
    const uint64_t small = Matrix(parameter).small();
    return is_matrix(parameter) ? 2 * (parameter.elements() + small * small) : 0;
  }

  template <class T>
  void update(const Update<T>& u) const {
    if (is_matrix(u.parameter())) {
      update_matrix(u);
    } else {
      update_vector(u);
    }
  }

 private:
  bool is_matrix(const Trained& parameter) const {
    const auto names = [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), parameter.name().data(), 0) == 0;
    };
    return Matrix(parameter).small() > 1 && std::ranges::none_of(adam_, names);
  }

  template <class T>
  void update_matrix(const Update<T>& u) const {
    const auto p = u.values(), g = u.gradient(), m = u.state(0);
    const T momentum = static_cast<T>(momentum_);
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] += (1 - momentum) * (g[i] - m[i]);
      g[i] = nesterov_ ? g[i] + momentum * (m[i] - g[i]) : m[i];
    }
    const Matrix matrix(u.parameter());
    orthogonalise(g, matrix, u.scratch());
    const double shape =
        std::sqrt(std::max(1.0, static_cast<double>(matrix.rows) / static_cast<double>(matrix.columns)));
    const T kept = static_cast<T>(1 - u.lr() * u.weight_decay()), rate = static_cast<T>(u.lr() * shape);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = kept * p[i] - rate * g[i];
  }

  // x = a x + (b A + c A A) x with A = x x^T brings every singular value near 1.
  template <class T>
  void orthogonalise(std::span<T> g, const Matrix& matrix, std::span<T> scratch) const {
    constexpr T a = static_cast<T>(3.4445), b = static_cast<T>(-4.7750), c = static_cast<T>(2.0315);
    const std::size_t small = matrix.small(), large = g.size() / small, square = small * small;
    const bool turned = matrix.rows > matrix.columns;  // the method works on the wide form
    T* x = scratch.data();
    T *next = x + g.size(), *gramian = next + g.size(), *factor = gramian + square;
    const auto place = [&](std::size_t i) { return turned ? i % small * large + i / small : i; };

    double squares = 0;
    for (const T value : g) squares += static_cast<double>(value) * static_cast<double>(value);
    const T scale = static_cast<T>(1 / (std::sqrt(squares) + 1e-7));
    for (std::size_t i = 0; i < g.size(); ++i) x[place(i)] = g[i] * scale;
    for (int64_t step = 0; step < ns_steps_; ++step) {
      gram(x, gramian, small, large);
      for (std::size_t i = 0; i < square; ++i) factor[i] = 0;
      add_product(gramian, gramian, factor, small, small, small);
      for (std::size_t i = 0; i < square; ++i) factor[i] = b * gramian[i] + c * factor[i];
      for (std::size_t i = 0; i < g.size(); ++i) next[i] = a * x[i];
      add_product(factor, x, next, small, small, large);
      std::swap(x, next);
    }
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = x[place(i)];
  }

  template <class T>
  void update_vector(const Update<T>& u) const {
    const auto p = u.values(), g = u.gradient(), m = u.state(0), s = u.state(1);
    const auto steps = static_cast<double>(u.updates() + 1);
    const double lr = u.lr() * adam_lr_scale_, first_left = 1 - std::pow(betas_[0], steps),
                 second_left = 1 - std::pow(betas_[1], steps);
    const T first = static_cast<T>(betas_[0]), second = static_cast<T>(betas_[1]), eps = static_cast<T>(eps_);
    const T kept = static_cast<T>(1 - lr * u.weight_decay()), rate = static_cast<T>(lr / first_left),
            root = static_cast<T>(1 / std::sqrt(second_left));
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] += (1 - first) * (g[i] - m[i]);
      s[i] = second * s[i] + (1 - second) * g[i] * g[i];
      p[i] = kept * p[i] - rate * m[i] / (std::sqrt(s[i]) * root + eps);
    }
  }

  double momentum_;
  bool nesterov_;
  int64_t ns_steps_;
  std::vector<std::string> adam_;
  double adam_lr_scale_;
  std::vector<double> betas_;
  double eps_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "muon", .version = "1.0",
                .summary = "Muon: orthogonalised momentum for matrices, AdamW for the rest",
                .interfaces = {headroom::sdk::optimizer<Muon>()});
