from infra.program import deploy

deploy()
