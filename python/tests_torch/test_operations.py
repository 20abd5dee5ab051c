"""Operations whose libraries the dry device stands for."""

FACTORISATIONS = """
a = torch.randn(64, 64, device="cuda")
s, b, many = a @ a.T, torch.randn(64, 8, device="cuda"), torch.randn(16, 8, 8, device="cuda")
for kind in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    m = s.to(kind)
    torch.linalg.cholesky(m), torch.linalg.lu(m), torch.linalg.qr(m), torch.linalg.svd(m)
    torch.linalg.eigh(m), torch.linalg.eig(m), torch.linalg.solve(m, b.to(kind)), torch.linalg.inv(m)
    torch.linalg.ldl_factor(m), torch.linalg.householder_product(m, m[0])
    torch.linalg.svd(m, driver="gesvd"), torch.linalg.svd(m, driver="gesvdj")
    torch.linalg.svd(many.to(kind), driver="gesvda")
    torch.linalg.solve(many.to(kind), many.to(kind)), torch.linalg.inv(many.to(kind))
    torch.linalg.lstsq(m, b.to(kind)), torch.cholesky_solve(b.to(kind), m), torch.linalg.eigh(many.to(kind))
torch.linalg.matrix_rank(a), torch.linalg.cond(a), torch.linalg.pinv(a), torch.linalg.slogdet(a)
torch.nn.init.orthogonal_(torch.empty(64, 64, device="cuda"))
assert torch.linalg.svd(a)[1].shape == (64,)
"""

SPARSE = """
at = lambda *numbers: torch.tensor(numbers, device="cuda")
matrix = torch.sparse_csr_tensor(at(0, 1, 2), at(0, 1), torch.randn(2, device="cuda"), (2, 2))
assert (matrix @ torch.randn(2, 3, device="cuda")).shape == (2, 3)
assert (matrix @ torch.randn(2, device="cuda")).shape == (2,)
torch.sparse.sampled_addmm(matrix, torch.randn(2, 4, device="cuda"), torch.randn(4, 2, device="cuda"))
torch.triangular_solve(torch.randn(2, 1, device="cuda"), matrix)
torch.segment_reduce(torch.randn(10, device="cuda"), "sum", lengths=at(5, 5))
torch.isin(torch.randn(64, 64, device="cuda"), torch.randn(64, device="cuda"))
"""

CONVOLUTION = """
block = torch.randn(1, 8, 16, 64, 64, device="cuda")
torch.nn.Conv3d(8, 8, 3, padding=1, device="cuda")(block)
"""


def test_factorisations_and_solvers(dry):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(FACTORISATIONS))
    assert status in (0, 3), said
    assert report["completed"] and report["calls"]["cusolverDnXgeqrf_bufferSize"] > 0
    assert any("cusolver" in sentence for sentence in report["unknown"])


def test_sparse_matrices(dry):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(SPARSE))
    assert status == 3, said
    assert report["completed"] and report["calls"]["cusparseSpMM"] > 0


def test_what_is_not_modelled_names_device_and_remedy(dry):
    script = dry.script(
        """
at = lambda *numbers: torch.tensor(numbers, device="cuda")
matrix = torch.sparse_csr_tensor(at(0, 1, 2), at(0, 1), torch.randn(2, device="cuda"), (2, 2))
matrix @ matrix
"""
    )
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert (status, report) == (2, None)
    last = said.splitlines()[-1]
    assert "dry device" in last and "convert them" in last


def test_columns_of_convolutions_are_told(dry):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(CONVOLUTION))
    assert status == 0, said
    assert any("as columns" in sentence for sentence in report["unknown"])
